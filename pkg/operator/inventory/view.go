// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// inventory returns what the query is about.
func (s *sight) inventory(query Query) *Inventory {
	result := &Inventory{Time: s.now, Unread: s.unread, Servers: []ServerEntry{}, Machines: []MachineEntry{}}
	owners := map[*machineView]bool{}
	var doubts []string
	for _, view := range s.serverViews {
		if !query.matchesServer(view) {
			continue
		}
		entry := s.serverEntry(view)
		if doubt := noteOf(entry.Notes, NoteUnknown, NoteClusterUnknown); doubt != nil && len(view.named) == 0 {
			doubts = append(doubts, doubt.Reason)
		}
		if query.Orphans && noteOf(entry.Notes, NoteOrphan) == nil {
			continue
		}
		result.Servers = append(result.Servers, entry)
		owners[view.owner] = true
	}
	for _, view := range s.machineViews {
		if !query.Orphans && query.matchesMachine(view) && (view.Namespace == s.namespace || owners[view]) {
			result.Machines = append(result.Machines, s.machineEntry(view))
		}
	}
	if query.Orphans && len(doubts) > 0 {
		slices.Sort(doubts)
		result.Unread = append(result.Unread, Unread{PartOrphans, "", fmt.Sprintf("of %d servers it cannot be told: %s",
			len(doubts), strings.Join(slices.Compact(doubts), "; "))})
	}
	slices.SortFunc(result.Servers, func(a, b ServerEntry) int {
		return cmp.Or(compareStrings([]string{a.Cluster, a.Class, a.Machine}, []string{b.Cluster, b.Class, b.Machine}),
			a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(result.Machines, func(a, b MachineEntry) int {
		return compareStrings([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	slices.SortFunc(result.Unread, func(a, b Unread) int {
		return compareStrings([]string{string(a.Part), a.Where, a.Reason}, []string{string(b.Part), b.Where, b.Reason})
	})
	result.Totals = s.totals(result.Servers, result.Machines)
	result.Clusters = s.clusters(query, result)
	return result
}

func (q Query) matchesServer(view *serverView) bool {
	labels, owner := view.Labels, view.owner
	if !account.IsManaged(view.Server) && owner == nil && !q.Unmanaged {
		return false
	}
	return (q.hasCluster(labels) || owner != nil && q.hasCluster(owner.clusterLabels())) &&
		(q.Class == "" || q.Class == labels[provider.StackitMachineClassLabel] || owner != nil && q.Class == owner.Spec.Class.Name) &&
		(q.Machine == "" || q.Machine == labels[provider.StackitMachineLabel] || owner != nil && q.Machine == owner.Name)
}

func (q Query) matchesMachine(view *machineView) bool {
	ofCluster := q.hasCluster(view.clusterLabels()) || slices.ContainsFunc(view.servers, func(server *serverView) bool {
		return q.hasCluster(server.Labels)
	})
	return ofCluster && (q.Class == "" || q.Class == view.Spec.Class.Name) && (q.Machine == "" || q.Machine == view.Name)
}

func (q Query) hasCluster(labels map[string]string) bool {
	value, ok := labels[q.ClusterKey]
	return q.ClusterKey == "" || ok && value == q.ClusterValue
}

// clusterLabels are those of the Machine's class; nil if they are not known.
func (m *machineView) clusterLabels() map[string]string {
	if m.class == nil || m.class.Inputs.ClusterUnknown {
		return nil
	}
	return m.class.Inputs.ClusterLabels
}

func (s *sight) serverEntry(view *serverView) ServerEntry {
	entry := ServerEntry{
		ID: view.ID, Name: view.Name, Project: view.at.project, Region: view.at.region,
		Cluster:     account.ClusterText(account.ClusterLabels(view.Labels)),
		Class:       view.Labels[provider.StackitMachineClassLabel],
		Machine:     view.Labels[provider.StackitMachineLabel],
		State:       view.Status,
		Fault:       finding.OneLine(view.ErrorMessage),
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

func (s *sight) machineEntry(view *machineView) MachineEntry {
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
	server := view.server()
	switch {
	case server != nil:
		entry.Server, entry.State = server.ID, server.Status
		entry.Cluster = cmp.Or(entry.Cluster, account.ClusterText(account.ClusterLabels(server.Labels)))
	case noteOf(entry.Notes, NoteUnknown) != nil:
		entry.State = StateUnknown
	}
	entry.Node, entry.Readiness = s.readiness(s.node(view, server))
	return entry
}

// totals counts servers and Machines.
func (s *sight) totals(servers []ServerEntry, machines []MachineEntry) Totals {
	var active, ready, orphans int
	for i := range servers {
		if servers[i].isActive() {
			active++
		}
		if noteOf(servers[i].Notes, NoteOrphan) != nil {
			orphans++
		}
	}
	for i := range machines {
		if machines[i].Readiness == Ready {
			ready++
		}
	}
	var totals Totals
	if s.knows(PartServers) {
		totals.Servers, totals.Active = new(len(servers)), new(active)
	}
	if s.knows(PartMachines) {
		totals.Machines = new(len(machines))
		if s.knows(PartNodes) && !s.targetless {
			totals.Ready = new(ready)
		}
	}
	if s.knows(PartServers, PartMachines, PartOtherMachines, PartClasses) {
		totals.Orphans = new(orphans)
	}
	return totals
}

func (e *ServerEntry) isActive() bool { return (&provider.Server{Status: e.State}).IsActive() }

// clusters counts by cluster label: of the servers and Machines found, and of the Namespace's
// classes.
func (s *sight) clusters(query Query, found *Inventory) []ClusterEntry {
	servers, machines, classes := map[string][]ServerEntry{}, map[string][]MachineEntry{}, map[string]int{}
	all := map[string]bool{}
	for _, server := range found.Servers {
		servers[server.Cluster] = append(servers[server.Cluster], server)
		all[server.Cluster] = true
	}
	for _, machine := range found.Machines {
		machines[machine.Cluster] = append(machines[machine.Cluster], machine)
		all[machine.Cluster] = true
	}
	for _, class := range s.classes {
		if !query.hasCluster(class.Inputs.ClusterLabels) || query.Class != "" && query.Class != class.Name {
			continue
		}
		name := account.ClusterText(class.Inputs.ClusterLabels)
		classes[name]++
		if class.Namespace == s.namespace {
			all[name] = true
		}
	}
	entries := []ClusterEntry{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if query.ClusterKey != "" && !slices.Contains(strings.Split(name, ","), query.ClusterKey+"="+query.ClusterValue) {
			continue // of a server that has lost its Machine's label
		}
		entry := ClusterEntry{Cluster: name, Totals: s.totals(servers[name], machines[name])}
		if s.knows(PartClasses) {
			entry.Classes = new(classes[name])
		}
		entries = append(entries, entry)
	}
	return entries
}
