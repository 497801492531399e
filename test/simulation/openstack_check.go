// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import "github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"

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
func (w *world) mayDelete(c call, id string) {
	m := w.openStackOf(id)
	switch {
	case m == nil && c.operation != opDelete:
		w.violated("%s of %s for %s, which nobody made for it", c.operation, id, c.caller)
		return
	case m == nil:
		return
	case m.cluster != c.cluster || !c.calledFor(m.machine):
		w.violated("%s of %s of %s for %s", c.operation, id, m.machine, c.caller)
	}
	machine := w.machine(m.owner)
	if machine != nil && machine.DeletionTimestamp == nil {
		w.violated("%s of %s of %s, which is to stay", c.operation, id, m.machine)
	}
	if machine != nil && m.Servers > 1 && machine.Spec.ProviderID == "" {
		w.violated("%s of %s of %s, of whose name there are %d servers", c.operation, id, m.machine, m.Servers)
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

// checkLeftovers is made when a Machine is gone: so is all that it had in OpenStack.
func (w *world) checkLeftovers(who owner) {
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
		for _, id := range m.leftovers {
			_, isNIC := nics[id]
			_, isVolume := volumes[id]
			if isNIC || isVolume {
				w.violated("%s is gone, and its %s is left", m.machine, id)
			}
		}
	}
}
