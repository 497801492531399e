// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package account has what the tasks of mcm-stackit share: which clusters, Secrets and
// project the user named, how they are read, and which server is an orphan.
package account

import (
	"net/http"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Access is what the commands share: where objects, credentials and servers are read.
type Access struct {
	// Sessions makes the sessions with the IaaS API, and Transport carries their requests.
	Sessions  spi.SessionProviderInterface
	Transport http.RoundTripper
	// NewSessions makes sessions like Sessions, but over another transport. Only
	// deletions need it, and Transport.
	NewSessions func(http.RoundTripper) spi.SessionProviderInterface
	// Control is the cluster with the Machines, its Namespace theirs; nil if none may be
	// asked.
	Control   client.Client
	Namespace string
	// Target is the cluster that the machines join; nil if none may be asked.
	Target client.Client
	// ControlError says why Control is nil; nil if nobody wants to ask it.
	ControlError error
	// SecretName names the Secret with the credentials, as "name" or "namespace/name"; ""
	// means those of the classes.
	SecretName string
	// Direct are credentials that are in no Secret; nil if none are given.
	Direct *Direct
	// Region beats what Secrets, classes and Direct say; "" if it is not given.
	Region string
	// ReadTimeout is how long a read of the API may take, retries included; 0 means as long
	// as the command lets it.
	ReadTimeout time.Duration
	// Program is what the command was called by, such as "mcm-stackit": printed commands begin
	// with it.
	Program string
	// Note is told which credentials are used; nil if nobody wants to know.
	Note func(text string)
	// Clock is for tests; nil means the real one.
	Clock clock.Clock
}

// Direct are a project, a region and a key that flags and variables name, without a Secret.
type Direct struct {
	ProjectID, Region string
	// KeyPath is the file with the service-account key; "" if none is needed.
	KeyPath string
	// Origin says which flags and variables they are.
	Origin string
}

// Scheme has the types that Control and Target are asked for.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// Now is the time.
func (o *Access) Now() time.Time { return o.ClockOrReal().Now() }

// ClockOrReal is Clock, or the real one.
func (o *Access) ClockOrReal() clock.Clock {
	if o.Clock != nil {
		return o.Clock
	}
	return clock.RealClock{}
}
