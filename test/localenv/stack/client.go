// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newClient makes a client that knows the types of Kubernetes, of CRDs and of Machines.
func newClient(config *rest.Config) (client.Client, error) {
	known := runtime.NewScheme()
	err := errors.Join(
		scheme.AddToScheme(known),
		apiextensionsv1.AddToScheme(known),
		machinev1alpha1.AddToScheme(known),
	)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: known})
}
