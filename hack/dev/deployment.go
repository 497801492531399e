// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// deployment is the MachineDeployment of the tour.
type deployment struct {
	env  *localenv.Env
	name string
}

func (d deployment) scale(ctx context.Context, replicas int32) error {
	return d.change(ctx, func(md *machinev1alpha1.MachineDeployment) { md.Spec.Replicas = replicas })
}

// roll makes a class like the present one with another machine type, and lets
// the deployment use it.
func (d deployment) roll(ctx context.Context, from, to, machineType string) error {
	var class machinev1alpha1.MachineClass
	if err := d.env.Client().Get(ctx, client.ObjectKey{Namespace: d.env.Namespace(), Name: from}, &class); err != nil {
		return err
	}
	spec, err := withMachineType(class.ProviderSpec.Raw, machineType)
	if err != nil {
		return fmt.Errorf("providerSpec of %s: %w", from, err)
	}
	class.ObjectMeta = metav1.ObjectMeta{Namespace: class.Namespace, Name: to}
	class.ProviderSpec.Raw = spec
	if err := d.env.Apply(ctx, &class); err != nil {
		return err
	}
	return d.change(ctx, func(md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.Class.Name = to })
}

func withMachineType(providerSpec []byte, machineType string) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(providerSpec, &fields); err != nil {
		return nil, err
	}
	fields["machineType"] = machineType
	return json.Marshal(fields)
}

func (d deployment) change(ctx context.Context, change func(*machinev1alpha1.MachineDeployment)) error {
	var md machinev1alpha1.MachineDeployment
	key := client.ObjectKey{Namespace: d.env.Namespace(), Name: d.name}
	if err := d.env.Client().Get(ctx, key, &md); err != nil {
		return err
	}
	before := client.MergeFrom(md.DeepCopy())
	change(&md)
	return d.env.Client().Patch(ctx, &md, before)
}

// running answers nil when there are want machines, all Running, all of this
// class, with an ACTIVE server and a Ready Node each, and nothing else.
func (d deployment) running(s state, want int, class string) error {
	good := 0
	for i := range s.machines {
		machine := &s.machines[i]
		server := s.serverOf(machine)
		if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning &&
			machine.Spec.Class.Name == class &&
			server != nil && server.Status == iaasmock.StatusActive &&
			s.nodeState(machine.Name) == ready {
			good++
		}
	}
	if good == want && len(s.machines) == want && len(s.servers) == want && len(s.nodes) == want {
		return nil
	}
	return fmt.Errorf("%d of %d machines are Running with an ACTIVE server and a Ready node (there are %d machines, %d servers, %d nodes)",
		good, want, len(s.machines), len(s.servers), len(s.nodes))
}
