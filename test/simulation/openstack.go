// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	migratedAnnotation = "stackit.cloud/migrated-machine"
	openStackID        = "openstack:///RegionOne/"
	openStackTag       = "kubernetes.io-cluster-"
)

// Origin is how a Machine comes from OpenStack.
type Origin struct {
	// Class of the Machine.
	Class string
	// Servers of its name: none, one, or two. Without a ProviderID nobody can tell two apart, and
	// both are its own; with one, the other is somebody else's.
	Servers int
	// Broken says that they are in ERROR.
	Broken bool
	// HasID says that the Machine has the ProviderID of the first of them and runs. Without
	// one its creation had not come to its end.
	HasID bool
	// Marked is when it gets the annotation, from the beginning; 0 is before.
	Marked time.Duration
	// Deleted is when it is deleted, from the beginning; 0 is at the end.
	Deleted time.Duration
	// Elsewhere says that somebody else's server has a NIC and a volume of its name.
	Elsewhere bool
}

// openStackMachine is a Machine that came from OpenStack.
type openStackMachine struct {
	owner
	Origin
	// servers, and all that it has by ID: servers, NICs and volumes.
	servers, remains []string
}

// fromOpenStack is what its Machines may bring about: one without a server, with two or with a
// broken one is refused until it is replaced.
var fromOpenStack = trouble{name: "Machines from OpenStack", explains: []codes.Code{codes.FailedPrecondition, codes.Internal}, spoils: true}

// drawOrigins draws how Machines come from OpenStack into plans in which nobody may lose track
// of a server: nothing in the cloud says whose these are but their names, so that no orphan run
// would find one that was lost. Whoever edits the Secret has to wait until they are labelled.
func (p *Plan) drawOrigins(rng *rand.Rand) {
	if rng.IntN(4) > 0 || !p.promised() || p.Edit == editSecret || slices.Contains(hidingPresets, p.Preset) {
		return
	}
	p.Release = pick(rng, 0, 0, 5*time.Second, 40*time.Second)
	for range 1 + rng.IntN(2) {
		origin := Origin{Class: pick(rng, classA, classB), Servers: pick(rng, 1, 1, 0, 2), Elsewhere: rng.IntN(2) == 0}
		origin.HasID = origin.Servers > 0 && rng.IntN(2) == 0
		origin.Marked = pick(rng, 0, between(rng, time.Second, p.FaultPeriod*3/4))
		origin.Deleted = pick(rng, 0, between(rng, time.Second, p.FaultPeriod))
		origin.Broken = rng.IntN(4) == 0
		p.Origins = append(p.Origins, origin)
	}
}

// moveIn makes what the OpenStack provider made for the Machines, and what others have that
// looks like it.
func (w *world) moveIn() {
	if len(w.plan.Origins) == 0 {
		return
	}
	for _, c := range w.clusters {
		for i, origin := range w.plan.Origins {
			m := &openStackMachine{owner: owner{c.name, fmt.Sprintf("%s-from-openstack-%d", c.name, i)}, Origin: origin}
			w.openStack = append(w.openStack, m)
			for twin := range origin.Servers {
				nic := w.foreign.nic(iaasmock.DefaultNetworkID, m.machine, nil, origin.HasID)
				volume := w.foreign.volume(m.machine, nil)
				tags := map[string]any{openStackTag + c.name: "1", "kubernetes.io-role-node": "1", clusterField: c.name}
				server := w.foreign.serverOf(m.machine, nic, volume, tags)
				w.trace.named(server)
				if twin > 0 && origin.HasID {
					continue // somebody else's: the ProviderID names the first
				}
				m.servers, m.remains = append(m.servers, server), append(m.remains, nic, volume)
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
			if c.world.sleep(3*time.Second) && m.HasID {
				c.api.edit(r, func(machine *v1alpha1.Machine) {
					machine.Spec.ProviderID = providerid.Format(home.project, m.servers[0])
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

// openStackOf returns the Machine from OpenStack that has the server, NIC or volume; nil if
// none has.
func (w *world) openStackOf(id string) *openStackMachine {
	for _, m := range w.openStack {
		if slices.Contains(m.servers, id) || slices.Contains(m.remains, id) {
			return m
		}
	}
	return nil
}

// isTwin says that the server is one more of a Machine that came from OpenStack.
func (w *world) isTwin(id string) bool {
	m := w.openStackOf(id)
	if m == nil {
		return false
	}
	machine := w.machine(m.owner)
	return len(m.servers) > 1 && (machine == nil || serverOf(machine.Spec.ProviderID) != id)
}

// machine returns the Machine; nil if there is none.
func (w *world) machine(who owner) *v1alpha1.Machine {
	for _, c := range w.clusters {
		if c.name == who.cluster {
			return c.api.current(who.machine, nil)
		}
	}
	return nil
}

// mayPost: a Machine from OpenStack has its server, or gets none. One without any, that is
// marked late, is like others before.
func (w *world) mayPost(c call) {
	for _, m := range w.openStack {
		if m.owner == (owner{c.cluster, c.subject}) && (len(m.servers) > 0 || m.Marked == 0) {
			w.violated("%s came from OpenStack, and a server is asked for", m.machine)
		}
	}
}

// mayDelete: what came from OpenStack stays as long as its Machine, and its NICs and volumes
// as long as its server. Nothing else may be deleted by its name.
func (w *world) mayDelete(c call, id string, by *cluster) {
	m := w.openStackOf(id)
	switch {
	case m == nil && c.operation != opDelete:
		w.violated("%s of %s for %s, which nobody made for it", c.operation, id, c.caller)
		return
	case m == nil:
		return
	case m.cluster != by.name || !c.calledFor(m.machine):
		w.violated("%s of %s of %s for %s", c.operation, id, m.machine, c.caller)
	}
	if machine := w.machine(m.owner); machine != nil && machine.DeletionTimestamp == nil {
		w.violated("%s of %s of %s, which is to stay", c.operation, id, m.machine)
	}
	if c.operation == opDelete {
		return
	}
	for _, server := range m.servers {
		if found, exists := w.cloud.Server(server); exists && found.Status != iaasmock.StatusDeleting {
			w.violated("%s of %s of %s, which still has %s", c.operation, id, m.machine, server)
		}
	}
}

// checkRemains is made when a Machine is gone: so is all that it had in OpenStack.
func (w *world) checkRemains(who owner) {
	_, nics, volumes := byID(w.cloud)
	for _, m := range w.openStack {
		if m.owner != who {
			continue
		}
		for _, id := range m.servers {
			if server, exists := w.cloud.Server(id); exists && w.stays(&server) {
				w.violated("%s is gone, and %s is left, which came from OpenStack", m.machine, id)
			}
		}
		for _, id := range m.remains {
			_, isNIC := nics[id]
			_, isVolume := volumes[id]
			if isNIC || isVolume {
				w.violated("%s is gone, and its %s is left", m.machine, id)
			}
		}
	}
}
