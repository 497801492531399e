// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// The classes of the deployment, before and after the roll.
const (
	firstClass  = "scale-first"
	secondClass = "scale-second"
)

// deployment is the MachineDeployment that is scaled and rolled.
type deployment struct {
	env    *localenv.Env
	object *v1alpha1.MachineDeployment
}

// newDeployment makes a deployment of no machines, with all it needs.
func newDeployment(ctx context.Context, env *localenv.Env, o options) (*deployment, error) {
	d := &deployment{env: env, object: deploymentObject(env.Namespace())}
	objects := []client.Object{secretObject(env)}
	for class, machineType := range map[string]string{firstClass: iaasmock.DefaultMachineType, secondClass: "g2i.4"} {
		object, err := classObject(env.Namespace(), class, machineType, o.allowedAddresses)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	for _, object := range append(objects, d.object) {
		if err := env.Client().Create(ctx, object); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *deployment) scale(ctx context.Context, replicas int) error {
	return d.change(ctx, func(spec *v1alpha1.MachineDeploymentSpec) { spec.Replicas = int32(replicas) }) //nolint:gosec // no deployment is that large
}

func (d *deployment) roll(ctx context.Context, class string) error {
	return d.change(ctx, func(spec *v1alpha1.MachineDeploymentSpec) { spec.Template.Spec.Class.Name = class })
}

func (d *deployment) change(ctx context.Context, change func(*v1alpha1.MachineDeploymentSpec)) error {
	before := client.MergeFrom(d.object.DeepCopy())
	change(&d.object.Spec)
	return d.env.Client().Patch(ctx, d.object, before)
}

func secretObject(env *localenv.Env) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "scale", Namespace: env.Namespace()},
		Data: map[string][]byte{
			"projectId":         []byte(iaasmock.DefaultProjectID),
			"region":            []byte(iaasmock.DefaultRegion),
			"networkId":         []byte(iaasmock.DefaultNetworkID),
			"serviceAccountKey": env.ServiceAccountKey(),
			// With the placeholder the manager makes a bootstrap token for each machine,
			// as it does in a Gardener shoot.
			"userData": []byte("#cloud-config\n# <<BOOTSTRAP_TOKEN>>\n"),
		},
	}
}

func classObject(namespace, name, machineType string, allowedAddresses []string) (*v1alpha1.MachineClass, error) {
	spec := map[string]any{
		"machineType": machineType,
		"imageId":     iaasmock.DefaultImageID,
		"bootVolume":  map[string]any{"size": 20},
		"labels":      map[string]string{"kubernetes.io/cluster": "shoot--local--scale"},
	}
	if len(allowedAddresses) > 0 {
		spec["allowedAddresses"] = allowedAddresses
	}
	raw, err := json.Marshal(spec)
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Name: name, Namespace: namespace},
		Provider:     "stackit",
		ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef:    &corev1.SecretReference{Name: "scale", Namespace: namespace},
	}, err
}

func deploymentObject(namespace string) *v1alpha1.MachineDeployment {
	labels := map[string]string{"deployment": "scale"}
	surge, none := intstr.FromString("50%"), intstr.FromInt32(0)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "scale", Namespace: namespace},
		Spec: v1alpha1.MachineDeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: firstClass}},
			},
		},
	}
}
