// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

// Origin describes a Machine that comes from OpenStack.
type Origin struct {
	// Class is the name of the Machine's class.
	Class string
	// Servers is the number of servers with the Machine's name: 0, 1 or 2. The second belongs to another owner;
	// without a ProviderID the driver cannot tell which one is the Machine's.
	Servers int
	// Named is the time, beyond 3 s, from the annotation until the Machine gets our ProviderID of its first server.
	// It gets one only if HasID is true or there are two servers.
	Named time.Duration
	// Broken means that the Machine's server is in ERROR.
	Broken bool
	// HasID means that the Machine begins as Running, with OpenStack's ProviderID of its first server. Otherwise the
	// OpenStack provider had not finished its creation.
	HasID bool
	// Marked is when the Machine gets the annotation stackit.cloud/migrated-machine, counted from when it is added
	// to its cluster; 0 means that it has the annotation by then.
	Marked time.Duration
	// Deleted is when the Machine is deleted, counted from when it is added to its cluster; 0 means at the end of
	// the run.
	Deleted time.Duration
	// Elsewhere means that servers of another owner have NICs and volumes with the Machine's name.
	Elsewhere bool
}

// openStackMachine is a Machine that came from OpenStack.
type openStackMachine struct {
	owner
	Origin
	// servers are the IDs of its servers, leftovers those of its NICs and volumes.
	servers, leftovers []string
}

const (
	migratedAnnotation = "stackit.cloud/migrated-machine"
	openStackID        = "openstack:///RegionOne/"
	// openStackTag begins the key of the metadata by which the OpenStack provider names a cluster.
	openStackTag = "kubernetes.io-cluster-"
)

// fromOpenStack lists what Machines from OpenStack may cause: a Machine without a server, or with a broken server,
// is refused until it is replaced, a Machine with two until an operator names its own.
var fromOpenStack = trouble{name: "Machines from OpenStack",
	explains: []codes.Code{codes.FailedPrecondition, codes.Internal}, spoils: true}

// moveIn creates the resources that the OpenStack provider made for the Machines, and lookalikes of other
// owners.
func (w *world) moveIn() {
	if len(w.plan.Origins) == 0 {
		return
	}
	for _, c := range w.clusters {
		cluster := c.name
		for i, origin := range w.plan.Origins {
			name := fmt.Sprintf("%s-from-openstack-%s", cluster, strings.Repeat(fmt.Sprint(i), 5))
			m := &openStackMachine{owner: owner{cluster, name}, Origin: origin}
			w.openStack = append(w.openStack, m)
			for twin := range origin.Servers {
				nic := w.foreign.nic(iaasmock.DefaultNetworkID, m.machine, nil, origin.HasID || origin.Servers > 1)
				volume := w.foreign.volume(m.machine, nil)
				tags := map[string]any{openStackTag + cluster: "1", "kubernetes.io-role-node": "1", clusterField: cluster}
				server := w.foreign.serverOf(m.machine, nic, volume, tags)
				w.trace.named(server)
				if twin > 0 {
					continue // another owner's: the ProviderID names the first, or will
				}
				m.servers, m.leftovers = append(m.servers, server), append(m.leftovers, nic)
				if m.Broken && w.cloud.SetServerStatus(server, iaasmock.StatusError, "broken") != nil {
					panic("no server " + server)
				}
				w.trace.called(nic, "NIC of "+m.machine)
				w.trace.called(volume, "volume of "+m.machine)
			}
			w.foreign.lookalikes(m)
		}
	}
	w.met(&fromOpenStack)
}

// lookalikes creates resources that have the name of a Machine from OpenStack and are not its own.
func (f *foreign) lookalikes(m *openStackMachine) {
	const network = iaasmock.DefaultNetworkID
	f.nic(iaasmock.DefaultDualStackNetworkID, m.machine, nil, false)
	for _, labels := range []map[string]any{
		{clusterLabel: "shoot-z"}, {"example.org/cluster": "shoot-z"}, {provider.StackitMachineLabel: "by-hand"},
		{openStackTag + "shoot-z": "1"},
	} {
		f.nic(network, m.machine, labels, false)
		f.volume(m.machine, labels)
	}
	if m.Elsewhere {
		f.serverOf("nobody-s-"+m.machine, f.nic(network, m.machine, nil, false), f.volume(m.machine, nil), nil)
		f.serverOf(m.machine, f.nic(network, m.machine, nil, false), f.volume(m.machine, nil),
			map[string]any{openStackTag + "shoot-z": "1"})
	}
}

// comeOver adds the cluster's Machines from OpenStack and schedules their steps: the annotation, then our
// ProviderID, and their deletion.
func (c *cluster) comeOver() {
	for _, m := range c.world.openStack {
		if m.cluster != c.name {
			continue
		}
		c.add(m.machine, m.Class, m.asItWas(c.world))
		c.world.spawn(func() {
			if m.Marked > 0 && c.world.sleep(m.Marked) {
				c.world.log("%s %s is marked", c.name, m.machine)
				manager.Edit(c.api, "machines", m.machine, mark)
			}
			if c.world.sleep(3*time.Second+m.Named) && (m.HasID || m.Servers > 1) {
				c.world.log("%s %s has our ProviderID", c.name, m.machine)
				manager.Edit(c.api, "machines", m.machine, func(machine *v1alpha1.Machine) {
					machine.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, m.servers[0])
				})
			}
		})
		c.world.spawn(func() {
			if m.Deleted > 0 && c.world.sleep(m.Deleted) {
				if machine := c.machine(m.machine); machine != nil {
					c.unwant(machine)
				}
			}
		})
	}
}

func mark(m *v1alpha1.Machine) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, migratedAnnotation, "true")
}

// asItWas backdates a new Machine to before every process.
func (m *openStackMachine) asItWas(w *world) func(*v1alpha1.Machine) {
	return func(machine *v1alpha1.Machine) {
		machine.CreationTimestamp = metav1.NewTime(w.start.Add(w.plan.Skew - time.Minute).Truncate(time.Second))
		machine.Finalizers = []string{manager.Finalizer}
		if m.Marked == 0 {
			mark(machine)
		}
		if m.HasID {
			machine.Spec.ProviderID = openStackID + m.servers[0]
			machine.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
			machine.Status.Conditions = conditions(true, w.start)
			metav1.SetMetaDataLabel(&machine.ObjectMeta, v1alpha1.NodeLabelKey, machine.Name)
		}
	}
}

// mayPost checks that no server is created for a Machine from OpenStack, except for a Machine without a server
// that is marked late: until then it is like any other.
func (w *world) mayPost(c call) {
	for _, m := range w.openStack {
		if m.owner == (owner{c.cluster, c.subject}) && (len(m.servers) > 0 || m.Marked == 0) {
			w.violated("a server is requested for Machine %s, which came from OpenStack and must not get a new one", m.machine)
		}
	}
}

// mayDelete checks a DELETE: a resource from OpenStack stays as long as its Machine, its NICs and volumes as long
// as its server (isKept). No other NIC or volume may be deleted.
func (w *world) mayDelete(c call) {
	id := c.id
	m := w.openStackOf(id)
	switch {
	case m == nil && c.operation != opDelete:
		w.violated("%s of %s for %s: must be a NIC or volume of a Machine from OpenStack", c.operation, id, c.caller)
		return
	case m == nil:
		return
	case m.cluster != c.cluster || !c.calledFor(m.machine):
		w.violated("%s of %s, which belongs to Machine %s, for %s: must be for its own Machine and cluster",
			c.operation, id, m.machine, c.caller)
	}
	machine := w.machine(m.owner)
	if machine != nil && machine.DeletionTimestamp == nil {
		w.violated("%s of %s of Machine %s, whose deletion was not requested", c.operation, id, m.machine)
	}
	if machine != nil && m.Servers > 1 && machine.Spec.ProviderID == "" {
		w.violated("%s of %s of Machine %s, which has no ProviderID while %d servers have its name",
			c.operation, id, m.machine, m.Servers)
	}
	if c.operation == opDelete {
		return
	}
	for _, server := range m.servers {
		if w.isKept(server) {
			w.violated("%s of %s of Machine %s, whose server %s still exists", c.operation, id, m.machine, server)
		}
	}
}

// isKept reports whether the server exists, is not DELETING, and would stay without further checks.
func (w *world) isKept(id string) bool {
	server, exists := w.cloud.Server(id)
	return exists && server.Status != iaasmock.StatusDeleting
}

// checkLeftovers checks that nothing from OpenStack is left of a Machine that is gone.
func (w *world) checkLeftovers(who owner) {
	things := thingsIn(w.cloud)
	for _, m := range w.openStack {
		if m.owner != who {
			continue
		}
		for _, id := range m.servers {
			if _, exists := w.cloud.Server(id); exists {
				w.violated("Machine %s is gone, but its server %s from OpenStack still exists", m.machine, id)
			}
		}
		for _, id := range m.leftovers {
			if _, exists := things[id]; exists {
				w.violated("Machine %s is gone, but its NIC %s still exists", m.machine, id)
			}
		}
	}
}
