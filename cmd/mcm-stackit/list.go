// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// listing is a run of list.
type listing struct {
	*options
	kind      *listKind
	output    format
	cluster   string
	selector  string
	query     list.Query
	noHeaders bool
}

// listKind is a word after list.
type listKind struct {
	name           string
	aliases        []string
	short, example string
	table          func(*list.Inventory) *table
	// totals is the last line; nil means totalsText.
	totals func(*list.Inventory) string
	// details are the notes that are explained below the table.
	details []list.NoteKind
	// needs are the parts without which the question cannot be answered.
	needs []list.Part
	// keep removes from an inventory what is of the other kinds.
	keep func(*list.Inventory)
}

var listKinds = []*listKind{
	{
		name: "servers", aliases: []string{"server"},
		short: "Show a project's servers by cluster, class and machine",
		example: `  # The servers of the projects that the MachineClasses of a namespace name.
  mcm-stackit list servers -n default
  # One cluster's, with addresses, and what to do about what is wrong.
  mcm-stackit list servers --cluster kubernetes.io/cluster=shoot--demo--laptop -o wide
  # The IDs of servers that no Machine names. The exit code is 1 if there are any.
  mcm-stackit list servers --orphans -o name
  # By the servers' own labels, one a line, for a pipe.
  mcm-stackit list servers -l kubernetes.io/machineclass=worker --no-headers`,
		table:   serversTable,
		details: []list.NoteKind{list.NoteListedOtherwise, list.NoteStuck, list.NoteNoServer, list.NoteFault},
		needs:   []list.Part{list.PartServers},
		keep:    func(all *list.Inventory) { all.Machines, all.Clusters, all.Attachables = nil, nil, nil },
	},
	{
		name: "machines", aliases: []string{"machine"},
		short: "Show the Machines of a namespace with their servers and Nodes",
		example: `  # The Machines of a namespace; below them, why some are stuck, and the remedy.
  mcm-stackit list machines -n default
  # Those of all namespaces, every 10 seconds:
  #   watch -n 10 mcm-stackit list machines -A
  mcm-stackit list machines -A
  # What is not as the class asks for any more: the column DRIFT.
  mcm-stackit list machines -o wide
  # One of them with all that is known.
  mcm-stackit list machines --machine worker-1 -o yaml
  # Those of a class, for a pipe.
  mcm-stackit list machines --class worker -o name`,
		table:   machinesTable,
		details: []list.NoteKind{list.NoteListedOtherwise, list.NoteStuck},
		needs:   []list.Part{list.PartServers, list.PartMachines},
		keep:    func(all *list.Inventory) { all.Servers, all.Clusters, all.Attachables = nil, nil, nil },
	},
	{
		name: "clusters", aliases: []string{"cluster"},
		short: "Count classes, servers, Machines and orphans by cluster label",
		example: `  # All clusters that have servers in the project.
  mcm-stackit list clusters
  mcm-stackit list clusters -o json`,
		table: clustersTable,
		needs: []list.Part{list.PartServers},
		keep:  func(all *list.Inventory) { all.Servers, all.Machines, all.Attachables = nil, nil, nil },
	},
	{
		name:  kindOpenStack,
		short: "Show the NICs and volumes of Machines from OpenStack, and those that nobody has",
		example: `  # What the driver deletes with the Machines of a namespace, and what nobody deletes.
  mcm-stackit list openstack -n default
  # The IDs of all of them, for a pipe.
  mcm-stackit list openstack -o name`,
		table:  openStackTable,
		totals: openStackTotals,
		needs:  []list.Part{list.PartAttachables, list.PartServers, list.PartMachines, list.PartClasses, list.PartDeployments},
		keep:   func(all *list.Inventory) { all.Servers, all.Machines, all.Clusters = nil, nil, nil },
	},
}

// kindOpenStack is the word after list that asks for NICs and volumes.
const kindOpenStack = "openstack"

const listLong = `%s.

The projects are those of the MachineClasses in the namespace, or the one that --secret,
--project-id or the environment names. What cannot be read is said on stderr, and
what depends on it is "unknown". A server that a list lacks is read by its ID, before its
Machine is said to have no server; if it should have been in the list, the list is not believed.

Exit codes: 0 fine, 1 orphans were found (with --orphans), 2 it could not be told, or nothing
carries the label of --cluster, 64 wrong usage.`

func (o *options) newListCommand() *cobra.Command {
	list := &cobra.Command{
		Use:     "list",
		Short:   "Show servers, Machines and clusters",
		Example: "  mcm-stackit list servers\n  mcm-stackit list machines\n  mcm-stackit list clusters",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	for _, kind := range listKinds {
		list.AddCommand(o.newListKindCommand(kind))
	}
	return list
}

func (o *options) newListKindCommand(kind *listKind) *cobra.Command {
	l := &listing{options: o, kind: kind}
	command := &cobra.Command{
		Use:     kind.name,
		Aliases: kind.aliases,
		Short:   kind.short,
		Long:    fmt.Sprintf(listLong, kind.short),
		Example: kind.example,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := l.check(); err != nil {
				return err
			}
			return l.run(command.Context())
		},
	}
	l.output.addTo(command, formatWide, formatJSON, formatYAML, formatName)
	flags := command.Flags()
	flags.StringVar(&l.cluster, "cluster", "", "only this cluster's: its label as key=value, with a key that ends in /cluster")
	flags.StringVar(&l.query.Class, "class", "", "only those of the MachineClass of this name")
	flags.StringVar(&l.query.Machine, "machine", "", "only those of the Machine of this name")
	flags.BoolVar(&l.noHeaders, "no-headers", false, "print the rows of the table alone: no names of columns, nothing below them")
	switch kind.name {
	case "machines":
		flags.StringVarP(&l.selector, "selector", "l", "", "only Machines with these labels, as kubectl writes them: a=b,c!=d,e in (f,g)")
		flags.BoolVarP(&l.query.AllNamespaces, "all-namespaces", "A", false, "the Machines of all namespaces, with the projects that the MachineClasses there name")
	case "servers":
		flags.StringVarP(&l.selector, "selector", "l", "", "only servers with these labels, as kubectl writes them: a=b,c!=d,e in (f,g)")
		flags.BoolVar(&l.query.Orphans, "orphans", false, "only servers of this control cluster that no Machine of any namespace names")
		flags.BoolVar(&l.query.Unmanaged, "all", false, "also servers without the labels of machine-controller-manager")
	}
	return command
}

func (l *listing) check() error {
	if l.cluster != "" {
		if err := l.query.SetCluster(l.cluster); err != nil {
			return wrongUsage("--cluster: %v", err)
		}
	}
	if l.selector != "" {
		selector, err := labels.Parse(l.selector)
		if err != nil {
			return wrongUsage("--selector: %v", err)
		}
		if l.kind.name == "machines" {
			l.query.MachineLabels = selector
		} else {
			l.query.ServerLabels = selector
		}
	}
	if l.noHeaders && l.output.value != "" && l.output.value != formatWide {
		return wrongUsage("--no-headers is for tables: -o %s cannot be used with it", l.output.value)
	}
	return nil
}

func (l *listing) run(ctx context.Context) error {
	l.query.Attachables = l.kind.name == kindOpenStack
	l.query.Addresses = l.kind.name == "servers" && l.output.value != "" && l.output.value != formatName
	op, err := l.operator(ctx, false)
	if err != nil {
		return err
	}
	l.tryToConnect(op)
	progress := l.progress()
	progress.show("reading servers, Machines and Nodes")
	found := list.Read(ctx, op, l.query)
	progress.show("")
	for _, unread := range found.Unread {
		l.say("%v", unread)
	}
	if err := l.print(found); err != nil {
		return err
	}
	return exitWith(l.exitCode(found))
}

// exitCode says whether the question was answered, and whether what was looked for is there.
func (l *listing) exitCode(found *list.Inventory) int {
	switch {
	case l.query.Orphans && len(found.Servers) > 0:
		return report.ExitWrong
	case l.query.Orphans && !found.Knows(list.PartOrphans), l.query.AllNamespaces && !found.Knows(list.PartOtherMachines),
		!found.Knows(list.PartCluster), !found.Knows(l.kind.needs...):
		return report.ExitUnknown
	default:
		return report.ExitFine
	}
}

func (l *listing) print(found *list.Inventory) error {
	switch l.output.value {
	case formatName:
		for _, row := range l.kind.table(found).rows {
			if row.name == "" {
				continue
			}
			if _, err := fmt.Fprintln(l.streams.Out, row.name); err != nil {
				return err
			}
		}
		return nil
	case "", formatWide:
		return l.printText(found)
	default:
		printed := *found
		l.kind.keep(&printed)
		_, err := l.printAs(l.output, printed)
		return err
	}
}

// printText writes a table, what there is to say of some of its rows, and totals.
func (l *listing) printText(found *list.Inventory) error {
	table := l.kind.table(found)
	table.noHeaders = l.noHeaders
	for i := range table.columns {
		if l.query.AllNamespaces && table.columns[i].name == columnNamespace {
			table.columns[i].wide = false
		}
	}
	if err := table.print(l.streams.Out, l.output.value == formatWide); err != nil || l.noHeaders {
		return err
	}
	if err := printDetails(l.streams.Out, found, l.kind.details); err != nil {
		return err
	}
	totals := totalsText(found.Totals, l.query.Orphans)
	if l.kind.totals != nil {
		totals = l.kind.totals(found)
	}
	_, err := fmt.Fprintln(l.streams.Out, totals)
	return err
}
