// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// establishLimit is how long the API server may take to serve a new CRD, which
// is a second or two.
const establishLimit = 30 * time.Second

// installCRDs applies the CRDs in a folder and waits until they are served.
func (e *Env) installCRDs(ctx context.Context, folder string) error {
	crds, err := ReadManifests(folder)
	if err != nil {
		return err
	}
	if len(crds) == 0 {
		return fmt.Errorf("no manifests in %s", folder)
	}
	for _, crd := range crds {
		if err := e.apply(ctx, crd); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		if err := e.awaitEstablished(ctx, crd); err != nil {
			return fmt.Errorf("%s is not served: %w", crd.GetName(), err)
		}
	}
	return nil
}

func (e *Env) awaitEstablished(ctx context.Context, crd *unstructured.Unstructured) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishLimit, true, func(ctx context.Context) (bool, error) {
		var current apiextensionsv1.CustomResourceDefinition
		if err := e.control.client.Get(ctx, client.ObjectKeyFromObject(crd), &current); err != nil {
			return false, err
		}
		for _, condition := range current.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}
