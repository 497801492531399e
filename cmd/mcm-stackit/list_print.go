// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Columns that are named elsewhere, too.
const (
	// columnNote has the notes of a row.
	columnNote = "NOTE"
	// columnNamespace is shown with the Machines of all namespaces.
	columnNamespace = "NAMESPACE"
)

// unknown is the cell of a value that could not be read.
const unknown = list.StateUnknown

// serversTable has what fits 160 characters of a line, with the names that Gardener gives;
// a Node has the name of its Machine, so that its readiness is enough.
func serversTable(found *list.Inventory) *table {
	t := &table{columns: []column{
		{name: "CLUSTER"}, {name: "CLASS", wide: true}, {name: "MACHINE"}, {name: "SERVER"}, {name: "STATE"},
		{name: "AGE"}, {name: "TYPE"}, {name: "ZONE"}, {name: "ADDRESSES", wide: true},
		{name: columnNamespace, wide: true}, {name: "NODE"}, {name: columnNote},
		{name: "REASON", wide: true}, {name: "REMEDY", wide: true},
	}}
	keys := clusterKeys(found.Servers)
	for i := range found.Servers {
		server := &found.Servers[i]
		cluster := server.Cluster
		if len(keys) == 1 {
			_, cluster, _ = strings.Cut(cluster, "=")
		}
		addresses := strings.Join(server.Addresses, ",")
		if server.Addresses == nil {
			addresses = unknown
		}
		notes, reasons, remedies := noteCells(server.Notes)
		t.addRow(server.ID, cluster, server.Class, cmp.Or(server.Machine, server.Name), server.ID, server.State,
			age(found.Time, server.CreatedAt), server.MachineType, server.Zone, addresses,
			server.Namespace, readinessCell(server.Readiness), notes, reasons, remedies)
	}
	return t
}

// clusterKeys are the keys of the servers' cluster labels: if there is one, it need not be
// shown.
func clusterKeys(servers []list.ServerEntry) map[string]bool {
	keys := map[string]bool{}
	for i := range servers {
		for label := range strings.SplitSeq(servers[i].Cluster, ",") {
			if key, _, ok := strings.Cut(label, "="); ok {
				keys[key] = true
			}
		}
	}
	return keys
}

func machinesTable(found *list.Inventory) *table {
	t := &table{columns: []column{
		{name: "MACHINE"}, {name: columnNamespace, wide: true}, {name: "CLASS", wide: true}, {name: "PHASE"}, {name: "SERVER"},
		{name: "STATE"}, {name: "NODE", wide: true}, {name: "READY"}, {name: "AGE"},
		{name: "DRIFT", wide: true}, {name: columnNote}, {name: "REASON", wide: true}, {name: "REMEDY", wide: true},
	}}
	for i := range found.Machines {
		machine := &found.Machines[i]
		notes, reasons, remedies := noteCells(machine.Notes)
		t.addRow("machine/"+machine.Name,
			machine.Name, machine.Namespace, machine.Class, machine.Phase, machine.Server,
			machine.State, machine.Node, readyCell(machine.Readiness), age(found.Time, machine.CreatedAt),
			driftCell(machine), notes, reasons, remedies)
	}
	return t
}

func clustersTable(found *list.Inventory) *table {
	t := &table{columns: []column{
		{name: "CLUSTER"}, {name: "CLASSES"}, {name: "SERVERS"}, {name: "ACTIVE"}, {name: "MACHINES"}, {name: "READY"}, {name: "ORPHANS"},
	}}
	for i := range found.Clusters {
		cluster := &found.Clusters[i]
		t.addRow(cluster.Cluster,
			cluster.Cluster, number(cluster.Classes), number(cluster.Servers), number(cluster.Active),
			number(cluster.Machines), number(cluster.Ready), number(cluster.Orphans))
	}
	return t
}

func openStackTable(found *list.Inventory) *table {
	t := &table{columns: []column{
		{name: "NAME"}, {name: columnNamespace, wide: true}, {name: "KIND"}, {name: "ID"}, {name: "SERVER"}, {name: "NETWORK", wide: true},
		{name: "PROJECT", wide: true}, {name: "REGION", wide: true}, {name: columnNote}, {name: "REASON", wide: true}, {name: "REMEDY", wide: true},
	}}
	for i := range found.Attachables {
		one := &found.Attachables[i]
		notes, reasons, remedies := noteCells(one.Notes)
		t.addRow(strings.ToLower(one.Kind)+"/"+one.ID,
			one.Name, one.Namespace, one.Kind, one.ID, one.Server, one.Network, one.Project, one.Region, notes, reasons, remedies)
	}
	return t
}

func openStackTotals(found *list.Inventory) string {
	if !found.Knows(list.PartAttachables, list.PartServers, list.PartMachines, list.PartClasses) {
		return "NICs and volumes unknown"
	}
	owned := 0
	for i := range found.Attachables {
		if found.Attachables[i].Namespace != "" {
			owned++
		}
	}
	return fmt.Sprintf("NICs and volumes: %d of Machines from OpenStack, %d of nobody", owned, len(found.Attachables)-owned)
}

func number(n *int) string {
	if n == nil {
		return unknown
	}
	return strconv.Itoa(*n)
}

func age(now, created time.Time) string {
	if created.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(created))
}

func readinessCell(readiness list.Readiness) string {
	if readiness == list.NoNode {
		return none
	}
	return string(readiness)
}

func readyCell(readiness list.Readiness) string {
	switch readiness {
	case list.Ready:
		return "yes"
	case list.NotReady:
		return "no"
	default:
		return readinessCell(readiness)
	}
}

// driftCell is where a Machine's server is not what its class asks for.
func driftCell(machine *list.MachineEntry) string {
	if machine.State == unknown {
		return unknown
	}
	var parts []string
	for _, drift := range machine.Drift {
		parts = append(parts, drift.String())
	}
	return strings.Join(parts, "; ")
}

func noteCells(notes []list.Note) (words, reasons, remedies string) {
	var parts [3][]string
	for _, note := range notes {
		for i, text := range []string{note.String(), note.Reason, note.Remedy} {
			if text != "" && !slices.Contains(parts[i], text) {
				parts[i] = append(parts[i], text)
			}
		}
	}
	return strings.Join(parts[0], ", "), strings.Join(parts[1], "; "), strings.Join(parts[2], "; ")
}

// totalsText is the last line.
func totalsText(totals list.Totals, orphansOnly bool) string {
	orphans := plural(totals.Orphans, "orphan")
	switch {
	case orphansOnly && totals.Orphans == nil:
		return orphans
	case orphansOnly:
		return orphans + " of " + plural(totals.Servers, "server")
	}
	parts := []string{plural(totals.Servers, "server")}
	if totals.Active != nil {
		parts = append(parts, fmt.Sprintf("%d ACTIVE", *totals.Active))
	}
	machines := plural(totals.Machines, "Machine")
	if totals.Ready != nil {
		machines = fmt.Sprintf("%d of %s ready", *totals.Ready, machines)
	}
	return strings.Join(append(parts, machines, orphans), ", ")
}

// plural counts things: "1 server", "2 servers", "servers unknown".
func plural(n *int, thing string) string {
	if n == nil {
		return thing + "s unknown"
	}
	return report.Count(*n, thing)
}

// detail is a note that some Machines or servers share.
type detail struct {
	note list.Note
	// whose has the names of the Machines, or the IDs of the servers.
	whose []string
}

// String has the names in a line of their own.
func (d *detail) String() string {
	lines := []string{d.note.String()}
	for _, line := range [][2]string{
		{"of", report.Some(d.whose)}, {"reason", d.note.Reason}, {"cause", d.note.Cause}, {"remedy", d.note.Remedy},
	} {
		if line[1] != "" {
			lines = append(lines, fmt.Sprintf("  %-7s %s", line[0]+":", line[1]))
		}
	}
	return strings.Join(lines, "\n")
}

// printDetails explains notes of these kinds, those with one remedy together: a full quota
// stops many Machines at once.
func printDetails(out io.Writer, found *list.Inventory, kinds []list.NoteKind) error {
	all := details(found, kinds)
	for _, detail := range all {
		if _, err := fmt.Fprintf(out, "\n%v\n", detail); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(out)
	return err
}

// details returns the notes of these kinds, in the order of the kinds. The reason is that of
// the first of those that are told together.
func details(found *list.Inventory, kinds []list.NoteKind) []*detail {
	var all []*detail
	add := func(whose string, notes []list.Note) {
		for _, note := range notes {
			if !slices.Contains(kinds, note.Kind) {
				continue
			}
			same := slices.IndexFunc(all, func(other *detail) bool {
				return other.note.Kind == note.Kind && other.note.About == note.About && other.note.Cause == note.Cause &&
					(note.Cause != "" || other.note.Reason == note.Reason)
			})
			if same < 0 {
				same, all = len(all), append(all, &detail{note: note})
			}
			all[same].whose = append(all[same].whose, whose)
		}
	}
	for i := range found.Machines {
		machine := &found.Machines[i]
		name := machine.Name
		if machine.Namespace != found.Machines[0].Namespace || machine.Namespace != found.Machines[len(found.Machines)-1].Namespace {
			name = machine.Namespace + "/" + name // they are sorted by namespace
		}
		add(name, machine.Notes)
	}
	if slices.Contains(kinds, list.NoteFault) {
		for i := range found.Servers {
			faults := slices.DeleteFunc(slices.Clone(found.Servers[i].Notes), func(note list.Note) bool { return note.Kind != list.NoteFault })
			add(found.Servers[i].ID, faults)
		}
	}
	slices.SortStableFunc(all, func(a, b *detail) int {
		return cmp.Compare(slices.Index(kinds, a.note.Kind), slices.Index(kinds, b.note.Kind))
	})
	return all
}
