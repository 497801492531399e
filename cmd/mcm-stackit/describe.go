// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

func (o *options) newDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe machine NAME",
		Short: "Show a Machine with its servers, and what is wrong with it",
		Long: `Shows a Machine, what is wrong with it, why and what to do, and its servers.
What could not be read is "unknown"; the last lines say why. READY is what the manager last said of
the Machine's Node: no target cluster is asked.

Exit codes: 0 everything is known, 2 something is unknown, or the Machine does not exist, 64 wrong
usage.`,
		Example: `  mcm-stackit describe machine worker-1 -n default
  mcm-stackit describe machine/worker-1`,
		RunE: func(command *cobra.Command, words []string) error {
			name, err := machineName(words)
			if err != nil {
				return err
			}
			return o.describe(command.Context(), name)
		},
	}
}

// machineName reads "machine NAME" or "machine/NAME".
func machineName(words []string) (string, error) {
	if len(words) == 1 {
		words = strings.SplitN(words[0], "/", 2)
	}
	if len(words) != 2 || strings.TrimSuffix(words[0], "s") != "machine" ||
		words[1] == "" || strings.Contains(words[1], "/") {
		return "", wrongUsage("describe needs one Machine, as machine NAME or machine/NAME")
	}
	return words[1], nil
}

func (o *options) describe(ctx context.Context, name string) error {
	access, err := o.operator(ctx)
	if err != nil {
		return err
	}
	found := list.Read(ctx, access, list.Query{Machine: name})
	switch {
	case len(found.Machines) == 0 && len(found.Unknown) > 0:
		return fmt.Errorf("Machine %s/%s: %s", access.Namespace, name, strings.Join(found.Unknown, "; ")) //nolint:staticcheck // a kind's name
	case len(found.Machines) == 0:
		return fmt.Errorf("there is no Machine %s/%s: is the namespace right (-n)?", access.Namespace, name)
	}
	if _, err := io.WriteString(o.streams.Out, describedText(found)); err != nil {
		return err
	}
	return exitWith(unknownExitCode(found))
}

// tree is lines of text, each indented by its depth.
type tree struct{ lines []string }

func (t *tree) add(depth int, line string) {
	t.lines = append(t.lines, strings.Repeat("  ", depth)+line+"\n")
}

// field adds a line with a name and its value, which others may have written.
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

// describedText is a Machine with its servers.
func describedText(found *list.Result) string {
	machine, t := found.Machines[0], &tree{}
	t.add(0, fmt.Sprintf("Machine %s: %s", machine.Name, cmp.Or(machine.Phase, "no phase yet")+
		span(" for %s", found.Time, machine.PhaseSince.Time)+span(", %s old", found.Time, machine.CreationTimestamp.Time)))
	t.field(1, "namespace", machine.Namespace)
	t.field(1, "owner", cmp.Or(machine.Owner, "none: no MachineSet replaces it"))
	t.field(1, "class", machine.Class)
	t.field(1, "cluster", machine.Cluster)
	t.field(1, "providerID", machine.ProviderID)
	t.field(1, "node", machine.Node)
	t.field(1, "ready", string(machine.Ready))
	if last := machine.LastOperation; last != nil {
		t.field(1, "last operation", last.Type+" "+last.State+span(" %s ago", found.Time, last.Time.Time)+": "+last.Description)
	}
	t.notes(1, machine.Notes)
	for _, server := range machine.Servers {
		t.server(server, machine, found.Time)
	}
	if len(machine.Servers) == 0 {
		t.field(1, "server", machine.State)
	}
	for _, line := range slices.Concat(found.Stale, found.Unknown) {
		t.add(0, line)
	}
	return strings.Join(t.lines, "")
}

// server adds a server, with the notes that its Machine does not have.
func (t *tree) server(server *list.Server, machine *list.Machine, now time.Time) {
	t.add(1, fmt.Sprintf("Server %s: %s", server.Name, report.OneLine(server.State)+span(", %s old", now, server.CreationTimestamp.Time)))
	t.field(2, "name", server.ServerName)
	t.field(2, "project", server.ProjectID+" in "+server.Region)
	t.field(2, "type", server.MachineType)
	t.field(2, "zone", server.Zone)
	t.notes(2, slices.DeleteFunc(slices.Clone(server.Notes), func(note list.Note) bool {
		return slices.ContainsFunc(machine.Notes, func(said list.Note) bool {
			return said.Kind == note.Kind && said.About == note.About && strings.HasSuffix(said.Reason, note.Reason)
		})
	}))
}

// span is the text about the time since something began; "" if that is not known.
func span(format string, now, begin time.Time) string {
	if begin.IsZero() {
		return ""
	}
	return fmt.Sprintf(format, age(now, begin))
}
