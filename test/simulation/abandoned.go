// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func (w *world) abandon(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned[id] = true
}

// wasAbandoned says that a user has made one of the servers no Machine's. It may be found
// again beside one that was made meanwhile: then there are two by a user's doing, until an
// orphan run.
func (w *world) wasAbandoned(ids ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(ids, func(id string) bool { return w.abandoned[id] })
}

// isAbandoned says that the server is no Machine's by a user's doing.
func (w *world) isAbandoned(server *iaasmock.Server) bool {
	if !w.wasAbandoned(server.ID) {
		return false
	}
	m := w.machine(ownerOf(server))
	return m == nil || serverOf(m.Spec.ProviderID) != server.ID
}

// forgetAbandoned: an orphan run has seen to them.
func (w *world) forgetAbandoned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.abandoned)
}
