// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// Env is a running environment. Its methods may be used from several
// goroutines.
type Env struct {
	*stack.Env

	mock      *mock
	stopNodes func()
}

// Start starts all parts, whose programs make has built, and returns when all are ready:
// control plane healthy, CRDs established, both controllers answering on
// /healthz. If it fails, the error names the part with the end of its log (a
// *PartError), and everything that had been started is stopped again. ctx
// bounds the start alone: the environment runs until Stop.
func Start(ctx context.Context, opts ...Option) (*Env, error) {
	s := newSettings(opts)
	e := &Env{mock: &mock{cloud: iaasmock.New(s.cloudOptions...), wrap: s.cloudHandler}, stopNodes: func() {}}
	var err error
	if e.Env, err = stack.Start(ctx, append(s.stack, stack.WithCloud(e.mock))...); err != nil {
		return nil, err
	}
	if !s.targetless {
		e.stopNodes = startNodes(e.Cloud(), e.TargetClient(), s.joinDuration)
	}
	return e, nil
}

// Stop stops all parts in reverse order and removes the temporary folder. It
// returns when everything is gone. Further calls do nothing.
func (e *Env) Stop() {
	e.stopNodes()
	e.Env.Stop()
}

// Cloud returns the mock of the cloud, to look at and to change.
func (e *Env) Cloud() *iaasmock.Cloud { return e.mock.cloud }

// CloudURL returns the URL at which the mock serves the IaaS API.
func (e *Env) CloudURL() string { return e.mock.url }

// mock is the stack.Cloud that serves an iaasmock.Cloud on a free port.
type mock struct {
	cloud *iaasmock.Cloud
	wrap  func(http.Handler) http.Handler

	server *http.Server
	url    string
	served chan struct{}
}

// Start implements stack.Cloud. The key is accepted for the mock's default project.
func (m *mock) Start(ended func(error)) (stack.API, error) {
	key, err := m.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		return stack.API{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return stack.API{}, err
	}
	m.server = &http.Server{Handler: m.wrap(m.cloud), ReadHeaderTimeout: 10 * time.Second}
	m.url, m.served = "http://"+listener.Addr().String(), make(chan struct{})
	go func() {
		defer close(m.served)
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			ended(err)
		}
	}()
	return stack.API{
		Environment: []string{
			"STACKIT_IAAS_ENDPOINT=" + m.url,
			"STACKIT_TOKEN_BASEURL=" + m.url + "/token",
			"STACKIT_IDP_TOKEN_ENDPOINT=" + m.url + "/oauth/v2/token",
		},
		ServiceAccountKey: key,
	}, nil
}

// Stop implements stack.Cloud.
func (m *mock) Stop() {
	_ = m.server.Close()
	<-m.served
}

// What users of this package need of package stack has its name here, too.
type (
	// Part is stack.Part.
	Part = stack.Part
	// PartError is stack.PartError.
	PartError = stack.PartError
	// Request is stack.Request.
	Request = stack.Request
)

// The parts that users of this package name.
const (
	PartEtcd    = stack.PartEtcd
	PartManager = stack.PartManager
	PartSidecar = stack.PartSidecar
)

// Root is stack.Root.
func Root() (string, error) { return stack.Root() }

// ParseManifests is stack.ParseManifests.
func ParseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	return stack.ParseManifests(content)
}

// PodPart is stack.PodPart.
func PodPart(pod, container string) Part { return stack.PodPart(pod, container) }

// ReplicaPart is stack.ReplicaPart.
func ReplicaPart(number int) Part { return stack.ReplicaPart(number) }

// ServiceAccountToken is stack.ServiceAccountToken.
func ServiceAccountToken(ctx context.Context, c client.Client, namespace, name string) (string, error) {
	return stack.ServiceAccountToken(ctx, c, namespace, name)
}
