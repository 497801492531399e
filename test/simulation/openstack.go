// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	migratedAnnotation = "stackit.cloud/migrated-machine"
	openStackID        = "openstack:///RegionOne/"
)

// comeOver lets the cluster's Machines from OpenStack be there, and what happens to them: the
// mark, then our ProviderID, and their end.
func (c *cluster) comeOver() {
	for _, m := range c.world.openStack {
		if m.cluster != c.name {
			continue
		}
		r := c.add(m.machine, m.Class, m.asItWas(c.world))
		c.world.spawn(func() {
			if m.Marked > 0 && c.world.sleep(m.Marked) {
				c.world.log("%s %s is marked", c.name, m.machine)
				c.api.edit(r, mark)
			}
			if c.world.sleep(3*time.Second+m.Named) && (m.HasID || m.Servers > 1) {
				c.world.log("%s %s has our ProviderID", c.name, m.machine)
				c.api.edit(r, func(machine *v1alpha1.Machine) {
					machine.Spec.ProviderID = providerid.Format(ownPlace.project, m.servers[0])
				})
			}
		})
		c.world.spawn(func() {
			if m.Deleted > 0 && c.world.sleep(m.Deleted) {
				c.unwant(r)
			}
		})
	}
}

func mark(m *v1alpha1.Machine) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, migratedAnnotation, "true")
}

// asItWas makes a new Machine one from before every process.
func (m *openStackMachine) asItWas(w *world) func(*v1alpha1.Machine) {
	return func(machine *v1alpha1.Machine) {
		machine.CreationTimestamp = metav1.NewTime(w.start.Add(w.plan.Skew - time.Minute).Truncate(time.Second))
		if m.Marked == 0 {
			mark(machine)
		}
		if m.HasID {
			machine.Spec.ProviderID = openStackID + m.servers[0]
			machine.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
		}
	}
}
