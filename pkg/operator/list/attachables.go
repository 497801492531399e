// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
)

const remedyLeftOver = "nobody deletes it: look whose it is"

// attachableEntries are the NICs and volumes that Gardener's OpenStack provider made.
func (s *observation) attachableEntries(query Query) []AttachableEntry {
	entries := []AttachableEntry{}
	var accounts []*account.Account
	for _, at := range s.places {
		accounts = append(accounts, at.accounts...)
	}
	openStack := account.NewOpenStack(s.machines, s.classes, s.deployments, accounts)
	views := map[*v1alpha1.Machine]*machineView{}
	for _, view := range s.machineViews {
		views[view.Machine] = view
	}
	for _, at := range s.places {
		if at.used == nil {
			continue
		}
		known := openStack.At(at.used, at.servers)
		for i := range at.attachables {
			one := &at.attachables[i]
			owner := views[known.MachineOf(one)]
			if owner == nil && !known.IsLeftOver(one) || !query.matchesAttachable(one, owner) || owner != nil && !s.inScope(owner.Namespace) {
				continue
			}
			entry := AttachableEntry{Kind: one.Kind, ID: one.ID, Name: one.Name, Project: at.project, Region: at.region, Network: one.NetworkID, Server: one.ServerID}
			switch {
			case owner != nil:
				entry.Namespace = owner.Namespace
				entry.Notes = openStackNotes(owner)
			case s.knows(PartMachines, PartOtherMachines):
				entry.Notes = []Note{{Kind: NoteLeftOver, Remedy: remedyLeftOver,
					Reason: "its labels or its name look like those of a cluster here, and no server or Machine has it"}}
			default:
				entry.Notes = []Note{{Kind: NoteUnknown, Reason: "not all Machines could be read"}}
			}
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b AttachableEntry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return entries
}
