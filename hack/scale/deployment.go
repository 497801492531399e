// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// The classes in machines.yaml, before and after the roll.
const (
	firstClass  = "scale-first"
	secondClass = "scale-second"
)

//go:embed machines.yaml
var manifests []byte

// createMachines applies machines.yaml.
func createMachines(ctx context.Context, env *localenv.Env, allowedAddresses []string) error {
	objects, err := localenv.ParseManifests(manifests)
	if err != nil {
		return err
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "Secret":
			err = unstructured.SetNestedField(object.Object, string(env.ServiceAccountKey()), "stringData", "serviceAccountKey")
		case "MachineClass":
			err = unstructured.SetNestedStringSlice(object.Object, allowedAddresses, "providerSpec", "allowedAddresses")
		}
		if err != nil {
			return err
		}
		if err := env.Apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// patchDeployment merges a change into the spec of the MachineDeployment in machines.yaml.
func patchDeployment(ctx context.Context, env *localenv.Env, spec string) error {
	deployment := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "scale", Namespace: env.Namespace()}}
	return env.Client().Patch(ctx, deployment, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, spec)))
}
