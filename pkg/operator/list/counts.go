// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// doubtful are the notes of servers that may be orphans.
var doubtful = []NoteKind{NoteUnknown, NoteClusterUnknown}

// totals counts servers and Machines. Orphans are not known while a server may be one.
func (s *observation) totals(servers []ServerEntry, machines []MachineEntry) Totals {
	var active, ready, orphans, doubts int
	for i := range servers {
		if servers[i].isActive() {
			active++
		}
		if noteOf(servers[i].Notes, NoteOrphan) != nil {
			orphans++
		}
		if noteOf(servers[i].Notes, doubtful...) != nil {
			doubts++
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
	if s.knows(PartServers, PartMachines, PartOtherMachines, PartClasses) && doubts == 0 {
		totals.Orphans = new(orphans)
	}
	return totals
}

func (e *ServerEntry) isActive() bool { return (&provider.Server{Status: e.State}).IsActive() }

// clusterEntries counts by cluster label: of the servers and Machines found, and of the
// Namespace's classes.
func (s *observation) clusterEntries(query Query, found *Inventory) []ClusterEntry {
	servers, machines, classes := map[string][]ServerEntry{}, map[string][]MachineEntry{}, map[string]int{}
	all, carried := map[string]bool{}, map[string]bool{}
	for _, server := range found.Servers {
		servers[server.Cluster] = append(servers[server.Cluster], server)
		all[server.Cluster] = true
		carried[server.Cluster] = carried[server.Cluster] || server.isOfThisControl()
	}
	for _, machine := range found.Machines {
		machines[machine.Cluster] = append(machines[machine.Cluster], machine)
		all[machine.Cluster] = true
	}
	for _, class := range s.classes {
		name := account.ClusterText(class.Inputs.ClusterLabels)
		carried[name] = true
		if query.hasCluster(class.Inputs.ClusterLabels) && (query.Class == "" || query.Class == class.Name) {
			classes[name]++
			all[name] = all[name] || s.inScope(class.Namespace)
		}
	}
	entries := []ClusterEntry{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lost := query.ClusterKey != "" && !slices.Contains(strings.Split(name, ","), query.ClusterKey+"="+query.ClusterValue)
		if lost || !all[name] {
			continue // lost is of a server that has lost its Machine's label
		}
		entry := s.clusterEntry(name, servers[name], machines[name], carried[name])
		if s.knows(PartClasses) {
			entry.Classes = new(classes[name])
		}
		entries = append(entries, entry)
	}
	return entries
}

// isOfThisControl says that the control cluster has to do with the server's cluster labels. It
// may carry one of a class and one more: Gardener writes one value under two keys.
func (e *ServerEntry) isOfThisControl() bool {
	return noteOf(e.Notes, NoteOrphan) != nil || e.Namespace != "" && noteOf(e.Notes, NoteContradiction) == nil
}

// clusterEntry counts what belongs to a label. If no class carries it, its Machines may be in
// another control cluster.
func (s *observation) clusterEntry(name string, servers []ServerEntry, machines []MachineEntry, carried bool) ClusterEntry {
	entry := ClusterEntry{Cluster: name, Totals: s.totals(servers, machines)}
	for i := range servers {
		entry.Projects = append(entry.Projects, servers[i].Project)
	}
	slices.Sort(entry.Projects)
	entry.Projects = slices.Compact(entry.Projects)
	if !carried {
		entry.Orphans = nil
	}
	if !carried && len(machines) == 0 {
		entry.Machines, entry.Ready = nil, nil
	}
	return entry
}
