// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// servers of the clusters that fit.
func (w *world) servers(fits func(*iaasmock.Server) bool) map[owner][]string {
	found := map[owner][]string{}
	for _, server := range w.cloud.Servers() {
		if _, foreign := w.foreign.servers[server.ID]; !foreign && fits(&server) && !w.isAbandoned(&server) {
			found[ownerOf(&server)] = append(found[ownerOf(&server)], server.ID)
		}
	}
	return found
}

// stays says that the server would stay if nobody looked for it any more. A DELETE that was
// accepted and a moment in which the project looks empty are taken for the end of a
// deletion, which may be under way or have failed: an orphan run finds the server.
func (w *world) stays(server *iaasmock.Server) bool {
	return w.plan.Hiccup == 0 || server.Status != iaasmock.StatusDeleting && server.Status != iaasmock.StatusError
}

// openStackOf returns the Machine from OpenStack that has the server, NIC or volume; nil if
// none has.
func (w *world) openStackOf(id string) *openStackMachine {
	for _, m := range w.openStack {
		if slices.Contains(m.servers, id) || slices.Contains(m.leftovers, id) {
			return m
		}
	}
	return nil
}

func (w *world) serverOfNIC(id string) string {
	for _, nic := range w.cloud.NICs() {
		if nic.ID == id {
			return nic.ServerID
		}
	}
	return ""
}

// nodeReady says whether the Machine's Node is Ready: its server runs, with or
// without its allowed addresses.
func (w *world) nodeReady(m *v1alpha1.Machine) bool {
	server, exists := w.cloud.Server(serverOf(m.Spec.ProviderID))
	return exists && server.Status == iaasmock.StatusActive
}

func (w *world) initialized(serverID string) bool {
	for _, nic := range w.cloud.NICs() {
		if nic.ServerID == serverID && !slices.Contains(nic.AllowedAddresses, allowed) {
			return false
		}
	}
	return true
}

// settled says whether every Machine runs, or is gone if it is to go.
func (w *world) settled() bool {
	for _, api := range w.apis {
		for _, r := range api.all() {
			m, exists := api.latestOf(r)
			if exists && (m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning || !w.nodeReady(m)) {
				return false
			}
		}
	}
	return true
}
