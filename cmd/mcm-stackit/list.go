// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// The words after list and describe.
const (
	wordMachine  = "machine"
	wordMachines = "machines"
	wordServers  = "servers"
)

// listing is a run of list.
type listing struct {
	*options
	servers bool
	output  format
	cluster string
	orphans bool
	query   list.Query
}

const listLong = `%s

The projects are those of the MachineClasses in the namespace, unless --secret, or flags and
variables name one. Clusters and API are read side by side, for at most --request-timeout. What
could not be read is "unknown"; below the table stands why. READY is what the manager last said of
the Machine's Node: no target cluster is asked.

Exit codes: 0 all could be told, 2 something could not, 64 wrong usage.`

func (o *options) newListCommand() *cobra.Command {
	command := o.newListKindCommand("list", "Show Machines with their servers", `  # The Machines of a namespace; below them, why some are stuck, and the remedy
  mcm-stackit list -n default`, false)
	command.AddCommand(
		o.newListKindCommand(wordMachines, "Show Machines with their servers (what list shows, too)", `  # The Machines of a namespace; below them, why some are stuck, and the remedy
  mcm-stackit list machines -n default

  # Those of all namespaces, every 10 seconds:
  #   watch -n 10 mcm-stackit list machines -A
  mcm-stackit list machines -A

  # With all that is known of them, for jq
  mcm-stackit list machines -o json`, false),
		o.newListKindCommand(wordServers, "Show the servers of the namespace's clusters", `  # The servers of the clusters that the MachineClasses of a namespace name
  mcm-stackit list servers -n default

  # One cluster's, also if its MachineClasses are gone
  mcm-stackit list servers --cluster kubernetes.io/cluster=shoot--demo--laptop -o wide

  # Servers that no Machine names, as delete server takes them
  mcm-stackit list servers --orphans -o name`, true))
	return command
}

func (o *options) newListKindCommand(use, short, example string, servers bool) *cobra.Command {
	l := &listing{options: o, servers: servers}
	command := &cobra.Command{
		Use: use, Short: short, Long: fmt.Sprintf(listLong, short+"."), Example: example, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if l.cluster != "" {
				key, value, err := account.ParseClusterLabel(l.cluster)
				if err != nil {
					return wrongUsage("--cluster: %v", err)
				}
				l.query.Cluster = map[string]string{key: value}
			}
			return l.run(command.Context())
		},
	}
	flags := command.Flags()
	l.output.addTo(flags, command, formatWide, formatJSON, formatYAML, formatName)
	flags.StringVar(&l.cluster, "cluster", "", "only this cluster's: its label as key=value, with a key that ends in /cluster")
	flags.BoolVarP(&l.query.AllNamespaces, "all-namespaces", "A", false, "all namespaces, with the projects that the MachineClasses there name")
	if servers {
		flags.BoolVar(&l.orphans, "orphans", false, "only servers that no Machine of any namespace names")
	}
	return command
}

func (l *listing) run(ctx context.Context) error {
	access, err := l.reading(ctx)
	if err != nil {
		return err
	}
	found := list.Read(ctx, access, l.query)
	if l.orphans {
		var orphans []*list.Server
		for _, server := range found.Servers {
			if server.IsOrphan() {
				orphans = append(orphans, server)
			}
		}
		found.Servers, found.NotJudged = orphans, nil
	}
	if err := l.print(found); err != nil {
		return err
	}
	return exitWith(unknownExitCode(found))
}

// reading returns what list and describe read with. A cluster that cannot be reached is unknown.
func (o *options) reading(ctx context.Context) (*account.Access, error) {
	access, err := o.operator(ctx, false)
	if err == nil {
		access.ControlError = o.connect(ctx, access)
	}
	return access, err
}

// unknownExitCode says whether all could be told.
func unknownExitCode(found *list.Result) int {
	if len(found.Unknown) > 0 {
		return report.ExitUnknown
	}
	return report.ExitFine
}

func (l *listing) print(found *list.Result) error {
	if !l.output.isTable() {
		for _, unknown := range found.Unknown {
			l.say("%s", unknown)
		}
		if l.servers {
			return printObjects(l.options, l.output, found.Servers)
		}
		return printObjects(l.options, l.output, found.Machines)
	}
	table := machinesTable(found, l.query.AllNamespaces)
	if l.servers {
		table = serversTable(found)
	}
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: l.output.value == formatWide}).PrintObj(table, l.streams.Out); err != nil {
		return err
	}
	_, err := io.WriteString(l.streams.Out, belowTable(found, l.servers, l.query.AllNamespaces))
	return err
}
