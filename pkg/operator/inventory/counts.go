// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// totals counts servers and Machines. Orphans are not known while a server may be one.
func (s *sight) totals(servers []ServerEntry, machines []MachineEntry) Totals {
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

// cluster is what was found of a cluster label.
type cluster struct {
	servers  []ServerEntry
	machines []MachineEntry
	// classes counts those that the query is about. carried says that any class carries the
	// label: without one, its Machines may be in another control cluster.
	classes int
	carried bool
	// shown says that there is a row for it.
	shown bool
}

// clusterEntries counts by cluster label: of the servers and Machines found, and of the
// classes.
func (s *sight) clusterEntries(query Query, found *Inventory) []ClusterEntry {
	clusters := map[string]*cluster{}
	at := func(name string) *cluster {
		if clusters[name] == nil {
			clusters[name] = &cluster{}
		}
		return clusters[name]
	}
	for _, class := range s.classes {
		of := at(account.ClusterText(class.Inputs.ClusterLabels))
		of.carried = true
		if query.hasCluster(class.Inputs.ClusterLabels) && (query.Class == "" || query.Class == class.Name) {
			of.classes++
			of.shown = of.shown || s.namespace == "" || class.Namespace == s.namespace
		}
	}
	for _, server := range found.Servers {
		of := at(server.Cluster)
		of.servers, of.shown = append(of.servers, server), true
		// It may carry the label of a class and one more: Gardener writes one value under two keys.
		isOwned := server.Namespace != "" && noteOf(server.Notes, NoteContradiction) == nil
		of.carried = of.carried || isOwned || noteOf(server.Notes, NoteOrphan) != nil
	}
	for _, machine := range found.Machines {
		of := at(machine.Cluster)
		of.machines, of.shown = append(of.machines, machine), true
	}
	entries := []ClusterEntry{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		of := clusters[name]
		lost := query.ClusterKey != "" && !slices.Contains(strings.Split(name, ","), query.ClusterKey+"="+query.ClusterValue)
		if of.shown && !lost { // lost is of a server that has lost its Machine's label
			entries = append(entries, s.clusterEntry(name, of))
		}
	}
	return entries
}

func (s *sight) clusterEntry(name string, of *cluster) ClusterEntry {
	entry := ClusterEntry{Cluster: name, Totals: s.totals(of.servers, of.machines)}
	for i := range of.servers {
		entry.Projects = append(entry.Projects, of.servers[i].Project)
	}
	slices.Sort(entry.Projects)
	entry.Projects = slices.Compact(entry.Projects)
	if s.knows(PartClasses) {
		entry.Classes = new(of.classes)
	}
	if !of.carried {
		entry.Orphans = nil
		if len(of.machines) == 0 {
			entry.Machines, entry.Ready = nil, nil
		}
	}
	return entry
}
