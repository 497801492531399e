// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

func (o *options) newDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe machine NAME | server ID|NAME",
		Short: "Show a Machine with its servers, or a server, and what is wrong with it",
		Long: `Shows a Machine with its servers and their addresses, what is wrong with it, why, and what to do. Or shows
a server, even if no Machine names it, with the last 50 lines of its console log, which may contain secrets.
Values that could not be read are "unknown"; the last lines say why. READY is what the manager last
reported about the Machine's Node: the target cluster is not read.

Exit codes: 0 everything is known, 2 something is unknown, or there is no such Machine or server, 64 wrong
usage.`,
		Example: `  mcm-stackit describe machine worker-1 -n default
  mcm-stackit describe server worker-1 -n default
  mcm-stackit describe server/20000000-0000-4000-8000-000000000001`,
		RunE: func(command *cobra.Command, words []string) error {
			query, err := one(words)
			if err != nil {
				return err
			}
			return o.describe(command.Context(), query)
		},
		ValidArgsFunction: func(command *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(words) == 0:
				return []string{kindMachine, kindServer}, cobra.ShellCompDirectiveNoFileComp
			case len(words) == 1 && words[0] == kindMachine:
				return o.completeObjects(command, func(found *list.Result) (names []string) {
					for _, machine := range found.Machines {
						names = append(names, machine.Name)
					}
					return names
				})
			case len(words) == 1 && words[0] == kindServer:
				return o.completeObjects(command, func(found *list.Result) []string { return serverIDs(found.Servers) })
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// The kinds of objects that describe shows.
const (
	kindMachine = "machine"
	kindServer  = "server"
)

// serverIDs returns completions with the servers' IDs, and their names as descriptions.
func serverIDs(servers []*list.Server) (ids []string) {
	for _, server := range servers {
		if validation.IsUUID(server.Name) {
			ids = append(ids, cobra.CompletionWithDesc(server.Name, cell(server.ServerName)))
		}
	}
	return ids
}

// one parses "machine NAME", "server ID" or "server NAME", also with a slash.
func one(words []string) (query list.Query, err error) {
	if len(words) == 1 {
		words = strings.SplitN(words[0], "/", 2)
	}
	if len(words) == 2 && words[1] != "" && !strings.Contains(words[1], "/") {
		switch strings.TrimSuffix(words[0], "s") {
		case kindMachine:
			return list.Query{Machine: words[1]}, nil
		case kindServer:
			return list.Query{Server: words[1]}, nil
		}
	}
	return query, wrongUsage("describe needs one Machine or server, " +
		"as machine NAME, server ID or server NAME, or with a / between them")
}

func (o *options) describe(ctx context.Context, query list.Query) error {
	access, err := o.operator(ctx)
	if err != nil {
		return err
	}
	found := list.Read(ctx, access, query)
	unknown := strings.Join(found.Unknown, "; ")
	switch {
	case query.Machine != "" && len(found.Machines) == 0 && !found.MachinesRead:
		return fmt.Errorf("Machine %s/%s: %s", access.Namespace, query.Machine, unknown) //nolint:staticcheck // a kind's name
	case query.Machine != "" && len(found.Machines) == 0:
		return fmt.Errorf("there is no Machine %s/%s: check the namespace (-n)", access.Namespace, query.Machine)
	case query.Server != "" && len(found.Servers) == 0 && (!found.ServersRead || unknown != ""):
		return fmt.Errorf("server %s: %s", query.Server, unknown)
	case query.Server != "" && len(found.Servers) == 0:
		return fmt.Errorf("server %s not found in %s: check namespace and context", query.Server,
			strings.Join(slices.Sorted(maps.Keys(found.Read)), ", "))
	}
	if _, err := io.WriteString(o.streams.Out, describedText(found)); err != nil {
		return err
	}
	return exitWith(unknownExitCode(found))
}

// describedText formats a Machine with its servers, or servers: the cells of both tables as lines, and the text below.
func describedText(found *list.Result) string {
	var text strings.Builder
	line := func(name, value string) {
		_, _ = fmt.Fprintf(&text, "%-15s %s\n", name+":", cmp.Or(report.OneLine(value), none))
	}
	lines := func(table *metav1.Table, row int) {
		for i, cell := range table.Rows[row].Cells {
			line(table.ColumnDefinitions[i].Name, fmt.Sprint(cell))
		}
	}
	shown := found.Servers
	if len(found.Machines) > 0 {
		machine := found.Machines[0]
		shown = machine.Servers
		lines(machinesTable(found, true, true), 0)
		line("Phase for", age(found.Time, machine.PhaseSince.Time))
		line("Owner", cmp.Or(machine.Owner, "none: no MachineSet replaces it"))
		line("ProviderID", machine.ProviderID)
		if last := machine.LastOperation; last != nil {
			when := ""
			if !last.LastUpdateTime.IsZero() {
				when = " " + age(found.Time, last.LastUpdateTime.Time) + " ago"
			}
			line("Last operation", fmt.Sprintf("%s %s%s: %s", last.Type, last.State, when, last.Description))
		}
		for _, note := range machine.Notes {
			if note.Kind == list.NoteUnknown {
				line("Unknown", note.Reason)
			}
		}
	}
	servers := serversTable(&list.Result{Time: found.Time, Servers: shown})
	for i, server := range shown {
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		lines(servers, i)
		line("Addresses", strings.Join(server.Addresses, ", "))
		for i, logged := range server.ConsoleLog {
			if i == 0 {
				line("Console log", logged)
			} else {
				_, _ = fmt.Fprintf(&text, "%-15s %s\n", "", report.OneLine(logged))
			}
		}
	}
	aboutServers := len(found.Machines) == 0
	found.Clusters = nil // they count only the selected objects
	return strings.TrimRight(text.String()+belowTable(found, aboutServers, false), "\n") + "\n"
}
