// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// described has all that a Machine can have.
func described() *list.Description {
	found := shoot()
	machine, first, second := found.Machines[0], found.Servers[0], found.Servers[1]
	ago := func(minutes int) time.Time { return found.Time.Add(-time.Duration(minutes) * time.Minute) }
	machine.ProviderID = "stackit://" + first.Project + "/" + first.ID
	duplicate := list.Note{Kind: list.NoteDuplicate, Reason: "Machine a has another server", Remedy: "the manager deletes it itself"}
	second.Notes = []list.Note{duplicate, {Kind: list.NoteFault, Reason: "No valid host was found"}}
	duplicate.Reason = "server " + second.ID + ": " + duplicate.Reason
	machine.Notes = []list.Note{
		{Kind: list.NoteStuck, About: "Unavailable", Reason: "a read was refused", Cause: "the API is busy", Remedy: "nothing at first"}, duplicate,
	}
	return &list.Description{
		Time:       found.Time,
		Deployment: &list.OwnerDescription{Name: "shoot--demo--laptop-worker-z1", Desired: new(int32(3)), Ready: new(int32(2)), CreatedAt: ago(90)},
		Set:        &list.OwnerDescription{Name: "shoot--demo--laptop-worker-z1-5f8b7"},
		Machine: list.MachineDescription{MachineEntry: machine, PhaseSince: ago(5), LastOperation: &list.Operation{
			Type: "Create", State: "Failed", Description: "machine codes error: code = [Unavailable] message = [a read was refused]", Time: ago(4),
		}},
		Servers: []list.ServerDescription{
			{ServerEntry: first, NICs: []list.NICDescription{
				{ID: "e0000000-0000-4000-8000-000000000001", Network: "20000000-0000-4000-8000-000000000001", Addresses: []string{"10.1.0.1", "fd00:1::1"}, AllowedAddresses: []string{"100.64.0.0/11"}},
				{ID: "e0000000-0000-4000-8000-000000000002", Network: "20000000-0000-4000-8000-000000000002"},
			}},
			{ServerEntry: second},
		},
		Node: &list.NodeDescription{Name: machine.Name, Readiness: list.NotReady, ReadinessSince: ago(2), Message: "no CNI", CreatedAt: ago(3)},
	}
}

func TestDescribePrints(t *testing.T) {
	bare := &list.Description{Time: time.Now(), Machine: list.MachineDescription{MachineEntry: list.MachineEntry{
		Namespace: "default", Name: "single", Class: "worker", State: list.StateUnknown, Readiness: list.NoNode,
	}}}
	for name, found := range map[string]*list.Description{"describe-machine.txt": described(), "describe-machine-bare.txt": bare} {
		expectGolden(t, name, describedText(found))
	}
}

func TestDescribeExitCode(t *testing.T) {
	for name, row := range map[string]struct {
		machine, server list.NoteKind
		unread          list.Part
		want            int
	}{
		"fine":                            {want: report.ExitFine},
		"being created":                   {machine: list.NoteBeingCreated, want: report.ExitFine},
		"stuck":                           {machine: list.NoteStuck, want: report.ExitWrong},
		"no Node":                         {machine: list.NoteNoNode, want: report.ExitWrong},
		"a fault of the server":           {server: list.NoteFault, want: report.ExitWrong},
		"wrong and unknown":               {machine: list.NoteUnknown, server: list.NoteFault, unread: list.PartNICs, want: report.ExitWrong},
		"unknown server":                  {machine: list.NoteUnknown, want: report.ExitUnknown},
		"NICs unread":                     {unread: list.PartNICs, want: report.ExitUnknown},
		"Machines of others unread":       {unread: list.PartOtherMachines, want: report.ExitFine},
		"another cluster's with its name": {server: list.NoteOtherCluster, want: report.ExitFine},
	} {
		t.Run(name, func(t *testing.T) {
			found := &list.Description{Servers: []list.ServerDescription{{}}}
			if row.machine != "" {
				found.Machine.Notes = []list.Note{{Kind: row.machine}}
			}
			if row.server != "" {
				found.Servers[0].Notes = []list.Note{{Kind: row.server}}
			}
			if row.unread != "" {
				found.Unread = []list.Unread{{Part: row.unread}}
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
			if got.code != report.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, "describe needs one Machine, as machine NAME or machine/NAME") {
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
			if got.code != report.ExitUnknown || got.stdout != "" || !strings.Contains(got.stderr, "reading Machine default/a: ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
