// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// describing is a run of describe.
type describing struct {
	*options
	output format
}

func (o *options) newDescribeCommand() *cobra.Command {
	d := &describing{options: o}
	command := &cobra.Command{
		Use:   "describe machine NAME",
		Short: "Show all that belongs to a Machine, and what is wrong with it",
		Long: `Shows a Machine in a tree: its MachineDeployment and MachineSet, its servers with their NICs,
and its Node; below what is wrong, the reason and the remedy. A server that runs for more than
5 minutes without a Node is wrong, too. What cannot be read is unknown; standard error says why.

The API is asked for the servers of the Machine's cluster once, and for the NICs of each server
that is shown.

Exit codes: 0 fine, 1 something is wrong, 2 it could not be told, or the Machine is not there,
64 wrong usage.`,
		Example: `  mcm-stackit describe machine worker-1 -n default
  # As kubectl has it.
  mcm-stackit describe machine/worker-1
  # The NICs of its servers.
  mcm-stackit describe machine worker-1 -o jsonpath='{.servers[*].nics[*].id}'`,
		RunE: func(command *cobra.Command, words []string) error {
			name, err := machineName(words)
			if err != nil {
				return err
			}
			return d.run(command.Context(), name)
		},
		ValidArgs: []string{"machine"},
	}
	d.output.addTo(command, formatJSON, formatYAML)
	return command
}

// machineName reads "machine NAME" or "machine/NAME".
func machineName(words []string) (string, error) {
	if len(words) == 1 {
		words = strings.SplitN(words[0], "/", 2)
	}
	if len(words) != 2 || !slices.Contains([]string{"machine", "machines"}, words[0]) || words[1] == "" || strings.Contains(words[1], "/") {
		return "", wrongUsage("describe needs one Machine, as machine NAME or machine/NAME")
	}
	return words[1], nil
}

func (d *describing) run(ctx context.Context, name string) error {
	op, err := d.operator(ctx, false)
	if err != nil {
		return err
	}
	d.tryToConnect(op)
	progress := d.progress()
	progress.show("reading Machine " + name)
	found, err := list.Describe(ctx, op, name)
	progress.show("")
	if err != nil {
		return err
	}
	for _, unread := range found.Unread {
		d.say("%v", unread)
	}
	done, err := d.printAs(d.output, found)
	if err == nil && !done {
		_, err = fmt.Fprint(d.streams.Out, describedText(found))
	}
	if err != nil {
		return err
	}
	return exitWith(describedExitCode(found))
}

// describedExitCode says whether something is wrong, or could not be told.
func describedExitCode(found *list.Description) int {
	notes := slices.Clone(found.Machine.Notes)
	for i := range found.Servers {
		notes = append(notes, found.Servers[i].Notes...)
	}
	unread := slices.ContainsFunc(found.Unread, func(unread list.Unread) bool {
		return unread.Part != list.PartOtherMachines && unread.Part != list.PartOtherClasses
	})
	code := report.ExitFine
	if unread {
		code = report.ExitUnknown
	}
	for _, note := range notes {
		switch note.Kind {
		case list.NoteBeingCreated, list.NoteOtherCluster, list.NoteUnmanaged, list.NotePreserved:
		case list.NoteUnknown, list.NoteClusterUnknown:
			code = report.ExitUnknown
		default:
			return report.ExitWrong
		}
	}
	return code
}

// tree is lines of text, each indented by its depth.
type tree struct{ lines []string }

func (t *tree) add(depth int, line string) {
	t.lines = append(t.lines, strings.Repeat("  ", depth)+line+"\n")
}

// line adds a line with texts of others.
func (t *tree) line(depth int, parts ...string) {
	t.add(depth, report.OneLine(strings.Join(parts, " ")))
}

// field adds a line with a name and its value, if it has one.
func (t *tree) field(depth int, name, value string) {
	t.add(depth, fmt.Sprintf("%-15s %s", name+":", cmp.Or(report.OneLine(value), none)))
}

func (t *tree) notes(depth int, notes []list.Note) {
	for _, note := range notes {
		for line := range strings.SplitSeq((&detail{note: note}).String(), "\n") {
			t.add(depth, line)
		}
	}
}

// describedText is a Machine and all that belongs to it, a tree from its MachineDeployment to
// its NICs.
func describedText(found *list.Description) string {
	t, depth := &tree{}, 0
	for _, owner := range []struct {
		kind string
		*list.OwnerDescription
	}{{"MachineDeployment", found.Deployment}, {"MachineSet", found.Set}} {
		if owner.OwnerDescription == nil {
			continue
		}
		state := unknown
		if owner.Desired != nil && owner.Ready != nil {
			state = fmt.Sprintf("%d of %d ready", *owner.Ready, *owner.Desired) + span(", %s old", found.Time, owner.CreatedAt)
		}
		t.line(depth, owner.kind, owner.Name+":", state)
		depth++
	}
	t.machine(depth, found)
	for i := range found.Servers {
		t.server(depth+1, &found.Servers[i], found)
	}
	if len(found.Servers) == 0 {
		t.line(depth+1, "Server:", cmp.Or(found.Machine.State, "none"))
	}
	t.node(depth+1, found)
	return strings.Join(t.lines, "")
}

func (t *tree) machine(depth int, found *list.Description) {
	machine := &found.Machine
	t.line(depth, "Machine", machine.Name+":", cmp.Or(machine.Phase, "no phase yet")+span(" for %s", found.Time, machine.PhaseSince)+span(", %s old", found.Time, machine.CreatedAt))
	t.field(depth+1, "namespace", machine.Namespace)
	if found.Set == nil {
		t.field(depth+1, "owner", "none: no MachineSet replaces it")
	}
	t.field(depth+1, "class", machine.Class)
	t.field(depth+1, "cluster", machine.Cluster)
	t.field(depth+1, "providerID", machine.ProviderID)
	if last := machine.LastOperation; last != nil {
		t.field(depth+1, "last operation", last.Type+" "+last.State+span(" %s ago", found.Time, last.Time)+": "+last.Description)
	}
	t.notes(depth+1, machine.Notes)
}

func (t *tree) server(depth int, server *list.ServerDescription, found *list.Description) {
	t.line(depth, "Server", server.ID+":", server.State+span(", %s old", found.Time, server.CreatedAt))
	t.field(depth+1, "name", server.Name)
	t.field(depth+1, "project", server.Project+" in "+server.Region)
	t.field(depth+1, "type", server.MachineType)
	t.field(depth+1, "zone", server.Zone)
	t.notes(depth+1, slices.DeleteFunc(slices.Clone(server.Notes), func(note list.Note) bool {
		return slices.ContainsFunc(found.Machine.Notes, func(said list.Note) bool {
			return said.Kind == note.Kind && said.About == note.About && strings.HasSuffix(said.Reason, note.Reason)
		})
	}))
	if server.NICs == nil {
		t.line(depth+1, "NICs:", unknown)
	}
	for _, nic := range server.NICs {
		t.line(depth+1, "NIC", nic.ID)
		t.field(depth+2, "network", nic.Network)
		t.field(depth+2, "addresses", strings.Join(nic.Addresses, ", "))
		t.field(depth+2, "allowed", strings.Join(nic.AllowedAddresses, ", "))
	}
}

func (t *tree) node(depth int, found *list.Description) {
	node := found.Node
	if node == nil {
		t.line(depth, "Node:", cmp.Or(string(found.Machine.Readiness), "no target cluster was asked"))
		return
	}
	t.line(depth, "Node", node.Name+":", string(node.Readiness)+span(" for %s", found.Time, node.ReadinessSince)+span(", %s old", found.Time, node.CreatedAt))
	if node.Readiness != list.Ready && node.Message != "" {
		t.field(depth+1, "kubelet", node.Message)
	}
}

// span is the text about the time since something began; "" if that is not known.
func span(format string, now, begin time.Time) string {
	if begin.IsZero() {
		return ""
	}
	return fmt.Sprintf(format, age(now, begin))
}
