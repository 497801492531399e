// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"slices"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// rig is the tests' rig, with what an inventory needs.
type rig struct{ *testrig.Rig }

func newRig(t testing.TB, options ...iaasmock.Option) *rig {
	t.Helper()
	return &rig{testrig.New(t, options...)}
}

// look makes an inventory.
func (r *rig) look(query list.Query) *list.Inventory {
	r.T.Helper()
	r.MakeClusters()
	return list.Read(r.T.Context(), r.Access, query)
}

// words are the notes, sorted.
func words(notes []list.Note) []string {
	all := []string{}
	for _, note := range notes {
		all = append(all, note.String())
	}
	slices.Sort(all)
	return all
}
