// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
)

// shoot is an inventory with the names that Gardener gives.
func shoot() *list.Inventory {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	const cluster, class = "kubernetes.io/cluster=shoot--demo--laptop", "shoot--demo--laptop-worker-z1-5f8b7"
	quota := list.Note{Kind: list.NoteStuck, About: "QuotaExceeded", Reason: "QuotaExceeded: Quota exceeded: creating a server: status 403",
		Cause: "the project's quota is used up", Remedy: "raise it, or scale something else down"}
	found := &list.Inventory{Time: now}
	for i := range 4 {
		name := fmt.Sprintf("%s-x2x4%d", class, i)
		id := fmt.Sprintf("d61a8564-c8dd-4ffb-bc15-143e7d0c85e%d", i)
		found.Servers = append(found.Servers, list.ServerEntry{
			ID: id, Name: name, Project: "10000000-0000-4000-8000-000000000001", Region: "eu01", Cluster: cluster, Class: class, Machine: name, Namespace: "shoot--demo--laptop",
			State: "ACTIVE", CreatedAt: now.Add(-time.Duration(i+1) * 25 * time.Hour), MachineType: "c2i.2", Zone: "eu01-1",
			Addresses: []string{fmt.Sprintf("10.1.0.%d", i), fmt.Sprintf("fd00:1::%d", i)}, Node: name, Readiness: list.Ready,
		})
		found.Machines = append(found.Machines, list.MachineEntry{
			Namespace: "shoot--demo--laptop", Name: name, Project: "10000000-0000-4000-8000-000000000001", Region: "eu01", Cluster: cluster, Class: class, Phase: "Running", Server: id, State: "ACTIVE",
			Node: name, Readiness: list.Ready, CreatedAt: now.Add(-time.Hour),
		})
	}
	orphan, broken := &found.Servers[2], &found.Servers[3]
	orphan.Namespace, orphan.Node, orphan.Readiness = "", "", list.NoNode
	orphan.Notes = []list.Note{{Kind: list.NoteOrphan, Reason: "no Machine is named so", Remedy: "the manager deletes it itself"}}
	broken.State, broken.Addresses, broken.Readiness, broken.Fault = "ERROR", nil, list.NotReady, "No valid host was found"
	broken.Notes = []list.Note{{Kind: list.NoteFault, Reason: "No valid host was found"}}
	for i := range 7 {
		found.Machines = append(found.Machines, list.MachineEntry{
			Namespace: "shoot--demo--laptop", Name: fmt.Sprintf("%s-stuck%d", class, i), Cluster: cluster, Class: class,
			Phase: "CrashLoopBackOff", Readiness: list.NoNode, CreatedAt: now.Add(-time.Minute), Notes: []list.Note{quota},
		})
	}
	found.Machines[2].Notes = []list.Note{{Kind: list.NoteNoServer, Reason: "server x is not in project y", Remedy: "delete the Machine"}}
	found.Machines[0].Notes = []list.Note{{Kind: list.NoteListedOtherwise, Reason: "the ProviderID is a, the driver lists b",
		Cause: "the manager compares ProviderIDs as texts", Remedy: "scale the manager to 0"}}
	found.Machines[0].Drift = []list.Drift{{Field: "machineType", Server: "c2i.2", Class: "c2i.4"}, {Field: "imageId", Server: unknown, Class: "x"}}
	found.Attachables = []list.AttachableEntry{
		{Kind: "NIC", ID: "6b3c9e1c-8c1c-4f0e-9d6b-0c9f3d2a7e11", Name: class + "-x2x40", Project: "10000000-0000-4000-8000-000000000001", Region: "eu01",
			Network: "2a8cbb47-4a1c-4c5e-93d6-2d6ee7a4a1f0", Server: found.Servers[0].ID, Namespace: "shoot--demo--laptop",
			Notes: []list.Note{{Kind: list.NoteFromOpenStack, Reason: "its annotation says so"}}},
		{Kind: "volume", ID: "9c0f1d52-1d3b-4b8a-8d0e-5d9c6a3b2f44", Name: class + "-gone0", Project: "10000000-0000-4000-8000-000000000001", Region: "eu01",
			Notes: []list.Note{{Kind: list.NoteLeftOver, Reason: "nobody has it", Remedy: "look whose it is"}}},
	}
	found.Totals = list.Totals{Servers: new(4), Active: new(3), Machines: new(11), Ready: new(4), Orphans: new(1)}
	found.Clusters = []list.ClusterEntry{{Totals: list.Totals{Servers: new(1)}}, {Cluster: cluster, Projects: []string{"10000000-0000-4000-8000-000000000001"}, Classes: new(1), Totals: found.Totals}}
	return found
}

// printed returns what list prints of an inventory.
func printed(t *testing.T, kind *listKind, output string, found *list.Inventory) string {
	t.Helper()
	var out bytes.Buffer
	o := newOptions(genericiooptions.IOStreams{Out: &out}, func(string) (string, bool) { return "", false })
	if err := (&listing{options: o, kind: kind, output: format{value: output}}).print(found); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestListPrints(t *testing.T) {
	for _, kind := range listKinds {
		for _, output := range []string{"", formatWide, formatJSON, formatName} {
			t.Run(kind.name+" "+output, func(t *testing.T) {
				t.Parallel()
				expectGolden(t, "list-"+strings.TrimSuffix(kind.name+"-"+output, "-")+".txt", printed(t, kind, output, shoot()))
			})
		}
	}
}

func TestMachinesOfAllNamespaces(t *testing.T) {
	found := shoot()
	found.Machines = found.Machines[3:6]
	found.Machines[2].Namespace = "shoot--demo--other"
	var out bytes.Buffer
	o := newOptions(genericiooptions.IOStreams{Out: &out}, func(string) (string, bool) { return "", false })
	if err := (&listing{options: o, kind: listKinds[1], query: list.Query{AllNamespaces: true}}).print(found); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MACHINE ", "NAMESPACE ", " shoot--demo--other ", "of:     shoot--demo--laptop/shoot--demo--laptop-worker-z1-5f8b7-stuck0, shoot--demo--other/"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestTotalsOfOrphans(t *testing.T) {
	for want, totals := range map[string]list.Totals{
		"0 orphans of 200 servers": {Servers: new(200), Orphans: new(0)},
		"1 orphan of 1 server":     {Servers: new(1), Orphans: new(1)},
		"orphans unknown":          {Servers: new(3)},
	} {
		if got := totalsText(totals, true); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTablesFitATerminal(t *testing.T) {
	const most = 160
	for _, kind := range listKinds {
		table, _, _ := strings.Cut(printed(t, kind, "", shoot()), "\n\n")
		for line := range strings.Lines(table) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > most {
				t.Errorf("%s: %d characters: %s", kind.name, width, line)
			}
		}
	}
}

func TestEmptyInventoryPrintsTotals(t *testing.T) {
	empty := &list.Inventory{Totals: list.Totals{Servers: new(0), Active: new(0), Machines: new(1), Orphans: new(0)}}
	for _, kind := range listKinds {
		want := "0 servers, 0 ACTIVE, 1 Machine, 0 orphans\n"
		if kind.name == kindOpenStack {
			want = "NICs and volumes: 0 of Machines from OpenStack, 0 of nobody\n"
		}
		if got := printed(t, kind, "", empty); got != want {
			t.Errorf("%s: got %q, want %q", kind.name, got, want)
		}
	}
}

func TestNoteCellsRepeatNothing(t *testing.T) {
	words, reasons, remedies := noteCells([]list.Note{
		{Kind: list.NoteOrphan, Reason: "no Machine", Remedy: "create the class again"},
		{Kind: list.NoteClassDeleted, Reason: "no class", Remedy: "create the class again"},
	})
	if words != "orphan, class deleted" || reasons != "no Machine; no class" || remedies != "create the class again" {
		t.Errorf("got %q, %q, %q", words, reasons, remedies)
	}
}
