// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Read reads and joins what a query is about. What cannot be read does not end it, and
// is among the Inventory's Unread.
func Read(ctx context.Context, o *account.Access, query Query) *Inventory {
	seen := look(ctx, o, query)
	return seen.inventory(query)
}

// inventory returns what the query is about.
func (s *observation) inventory(query Query) *Inventory {
	result := &Inventory{Time: s.now, Unread: s.unread, Servers: []ServerEntry{}, Machines: []MachineEntry{}}
	owners := map[*machineView]bool{}
	for _, view := range s.serverViews {
		if query.matchesServer(view) {
			result.Servers = append(result.Servers, s.serverEntry(view))
			owners[view.owner] = true
		}
	}
	for _, view := range s.machineViews {
		if query.matchesMachine(view) && (s.inScope(view.Namespace) || owners[view]) {
			result.Machines = append(result.Machines, s.machineEntry(view))
		}
	}
	slices.SortFunc(result.Servers, func(a, b ServerEntry) int {
		return cmp.Or(compareStrings([]string{a.Cluster, a.Class, a.Machine}, []string{b.Cluster, b.Class, b.Machine}),
			a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(result.Machines, func(a, b MachineEntry) int {
		return compareStrings([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	result.Totals = s.totals(result.Servers, result.Machines)
	result.Clusters = s.clusterEntries(query, result)
	if query.ClusterKey != "" && s.knows(PartServers) && !s.isCarried(query) {
		result.Unread = append(result.Unread, Unread{PartCluster, "", fmt.Sprintf("no server and no MachineClass that was read carries %s=%s",
			query.ClusterKey, query.ClusterValue)})
	}
	if query.Attachables {
		result.Attachables = s.attachableEntries(query)
	}
	if query.Orphans {
		result.keepOrphans()
	}
	slices.SortFunc(result.Unread, func(a, b Unread) int {
		return compareStrings([]string{string(a.Part), a.Where, a.Reason}, []string{string(b.Part), b.Where, b.Reason})
	})
	return result
}

// isCarried says whether a server or a class carries the cluster label of the query.
func (s *observation) isCarried(query Query) bool {
	return slices.ContainsFunc(s.serverViews, func(view *serverView) bool { return query.hasCluster(view.Labels) }) ||
		slices.ContainsFunc(s.classes, func(class *account.Class) bool { return query.hasCluster(class.Inputs.ClusterLabels) })
}

// keepOrphans leaves the servers that are orphans, and says which may be.
func (i *Inventory) keepOrphans() {
	orphans, doubts := []ServerEntry{}, []string{}
	for _, server := range i.Servers {
		if noteOf(server.Notes, NoteOrphan) != nil {
			orphans = append(orphans, server)
		}
		if doubt := noteOf(server.Notes, doubtful...); doubt != nil {
			doubts = append(doubts, doubt.Reason)
		}
	}
	i.Servers, i.Machines = orphans, []MachineEntry{}
	if len(doubts) > 0 {
		slices.Sort(doubts)
		i.Unread = append(i.Unread, Unread{PartOrphans, "", fmt.Sprintf("of %s it cannot be told: %s",
			report.Count(len(doubts), "server"), strings.Join(slices.Compact(doubts), "; "))})
	}
}

func (s *observation) serverEntry(view *serverView) ServerEntry {
	entry := ServerEntry{
		ID: view.ID, Name: view.Name, Project: view.at.project, Region: view.at.region,
		Cluster:     account.ClusterText(account.ClusterLabels(view.Labels)),
		Class:       view.Labels[provider.StackitMachineClassLabel],
		Machine:     view.Labels[provider.StackitMachineLabel],
		State:       view.Status,
		Fault:       report.OneLine(view.ErrorMessage),
		CreatedAt:   view.CreatedAt,
		MachineType: view.MachineType,
		Zone:        view.Zone,
		Notes:       s.serverNotes(view),
	}
	if view.owner != nil {
		entry.Namespace = view.owner.Namespace
		entry.Class, entry.Machine = cmp.Or(entry.Class, view.owner.Spec.Class.Name), cmp.Or(entry.Machine, view.owner.Name)
	}
	if view.at.addresses != nil {
		entry.Addresses = append([]string{}, view.at.addresses[view.ID]...)
	}
	owner := view.owner
	if owner != nil && owner.servers[0] != view {
		owner = nil // the Node of its Machine is on another server
	}
	entry.Node, entry.Readiness = s.readiness(s.node(owner, view))
	return entry
}

func (s *observation) machineEntry(view *machineView) MachineEntry {
	entry := MachineEntry{
		Namespace: view.Namespace, Name: view.Name,
		Cluster:    account.ClusterText(view.clusterLabels()),
		Class:      view.Spec.Class.Name,
		Phase:      string(view.Status.CurrentStatus.Phase),
		ProviderID: view.Spec.ProviderID,
		Server:     lastSegment(view.Spec.ProviderID),
		CreatedAt:  view.CreationTimestamp.Time,
		Notes:      s.machineNotes(view),
	}
	server, at := view.server(), s.classPlaces[view.class]
	if server != nil {
		at = server.at
	}
	if at != nil {
		entry.Project, entry.Region = at.project, at.region
	}
	switch {
	case server != nil:
		entry.Server, entry.State, entry.Drift = server.ID, server.Status, drift(server.Server, view.class)
		entry.Cluster = cmp.Or(entry.Cluster, account.ClusterText(account.ClusterLabels(server.Labels)))
	case noteOf(entry.Notes, NoteUnknown) != nil:
		entry.State = StateUnknown
	}
	entry.Node, entry.Readiness = s.readiness(s.node(view, server))
	return entry
}

// drift is where a server is not what its class asks for, or cannot be compared.
func drift(server *provider.Server, class *account.Class) []Drift {
	var machineType, image string
	if class != nil {
		machineType = class.Inputs.Spec.MachineType
		if volume := class.Inputs.Spec.BootVolume; volume != nil && volume.Source != nil {
			image = volume.Source.ID
		}
	}
	var all []Drift
	for _, each := range []Drift{{"machineType", server.MachineType, machineType}, {"imageId", server.ImageID, image}} {
		each.Server, each.Class = cmp.Or(each.Server, StateUnknown), cmp.Or(each.Class, StateUnknown)
		if each.Server != each.Class || each.Server == StateUnknown {
			all = append(all, each)
		}
	}
	return all
}

// compareStrings compares lists of texts of one length.
func compareStrings(a, b []string) int {
	return slices.CompareFunc(a, b, cmp.Compare[string])
}
