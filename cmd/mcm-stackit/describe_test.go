// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/inventory"
)

// described has all that a Machine can have.
func described() *inventory.Description {
	found := shoot()
	machine, first, second := found.Machines[0], found.Servers[0], found.Servers[1]
	ago := func(minutes int) time.Time { return found.Time.Add(-time.Duration(minutes) * time.Minute) }
	machine.ProviderID = "stackit://" + first.Project + "/" + first.ID
	duplicate := inventory.Note{Kind: inventory.NoteDuplicate, Reason: "Machine a has another server", Remedy: "the manager deletes it itself"}
	second.Notes = []inventory.Note{duplicate, {Kind: inventory.NoteFault, Reason: "No valid host was found"}}
	duplicate.Reason = "server " + second.ID + ": " + duplicate.Reason
	machine.Notes = []inventory.Note{
		{Kind: inventory.NoteStuck, About: "Unavailable", Reason: "a read was refused", Cause: "the API is busy", Remedy: "nothing at first"}, duplicate,
	}
	return &inventory.Description{
		Time:       found.Time,
		Deployment: &inventory.OwnerDescription{Name: "shoot--demo--laptop-worker-z1", Desired: new(int32(3)), Ready: new(int32(2)), CreatedAt: ago(90)},
		Set:        &inventory.OwnerDescription{Name: "shoot--demo--laptop-worker-z1-5f8b7"},
		Machine: inventory.MachineDescription{MachineEntry: machine, PhaseSince: ago(5), LastOperation: &inventory.Operation{
			Type: "Create", State: "Failed", Description: "machine codes error: code = [Unavailable] message = [a read was refused]", Time: ago(4),
		}},
		Servers: []inventory.ServerDescription{
			{ServerEntry: first, NICs: []inventory.NICDescription{
				{ID: "e0000000-0000-4000-8000-000000000001", Network: "20000000-0000-4000-8000-000000000001", Addresses: []string{"10.1.0.1", "fd00:1::1"}, AllowedAddresses: []string{"100.64.0.0/11"}},
				{ID: "e0000000-0000-4000-8000-000000000002", Network: "20000000-0000-4000-8000-000000000002"},
			}},
			{ServerEntry: second},
		},
		Node: &inventory.NodeDescription{Name: machine.Name, Readiness: inventory.NotReady, ReadinessSince: ago(2), Message: "no CNI", CreatedAt: ago(3)},
	}
}

func TestDescribePrints(t *testing.T) {
	bare := &inventory.Description{Time: time.Now(), Machine: inventory.MachineDescription{MachineEntry: inventory.MachineEntry{
		Namespace: "default", Name: "single", Class: "worker", State: inventory.StateUnknown, Readiness: inventory.NoNode,
	}}}
	for name, found := range map[string]*inventory.Description{"describe-machine.txt": described(), "describe-machine-bare.txt": bare} {
		expectGolden(t, name, describedText(found))
	}
}

func TestDescribeExitCode(t *testing.T) {
	for name, row := range map[string]struct {
		machine, server inventory.NoteKind
		unread          inventory.Part
		want            int
	}{
		"fine":                            {want: finding.ExitFine},
		"being created":                   {machine: inventory.NoteBeingCreated, want: finding.ExitFine},
		"stuck":                           {machine: inventory.NoteStuck, want: finding.ExitWrong},
		"no Node":                         {machine: inventory.NoteNoNode, want: finding.ExitWrong},
		"a fault of the server":           {server: inventory.NoteFault, want: finding.ExitWrong},
		"wrong and unknown":               {machine: inventory.NoteUnknown, server: inventory.NoteFault, unread: inventory.PartNICs, want: finding.ExitWrong},
		"unknown server":                  {machine: inventory.NoteUnknown, want: finding.ExitUnknown},
		"NICs unread":                     {unread: inventory.PartNICs, want: finding.ExitUnknown},
		"Machines of others unread":       {unread: inventory.PartOtherMachines, want: finding.ExitFine},
		"another cluster's with its name": {server: inventory.NoteOtherCluster, want: finding.ExitFine},
	} {
		t.Run(name, func(t *testing.T) {
			found := &inventory.Description{Servers: []inventory.ServerDescription{{}}}
			if row.machine != "" {
				found.Machine.Notes = []inventory.Note{{Kind: row.machine}}
			}
			if row.server != "" {
				found.Servers[0].Notes = []inventory.Note{{Kind: row.server}}
			}
			if row.unread != "" {
				found.Unread = []inventory.Unread{{Part: row.unread}}
			}
			if got := describedExitCode(found); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}

func TestDescribeUsage(t *testing.T) {
	for _, words := range []string{"", "machine", "machine a b", "server a", "machine/", "machine/a/b", "a", "machine/a b"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"describe"}, strings.Fields(words)...)}.run(t)
			if got.code != finding.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, "describe needs one Machine, as machine NAME or machine/NAME") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestDescribeWithoutACluster(t *testing.T) {
	for _, words := range [][]string{{"machine", "a"}, {"machines", "a"}, {"machine/a", "-o", "json"}} {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			t.Parallel()
			got := invocation{args: append([]string{"describe", noControl}, words...)}.run(t)
			if got.code != finding.ExitUnknown || got.stdout != "" || !strings.Contains(got.stderr, "reading Machine default/a: ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
