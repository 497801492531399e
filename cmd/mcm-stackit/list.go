// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// listing is one run of list.
type listing struct {
	*options
	servers, orphans, all bool
	format                string
	query                 list.Query
	// notes are those of the rows of the table.
	notes []noted
}

func (o *options) newListCommand() *cobra.Command {
	command := o.newListKindCommand("list", "Show Machines with their servers, and servers without a Machine", false)
	servers := o.newListKindCommand("servers", "Show the servers of the namespace's clusters", true)
	servers.Example = "  mcm-stackit list servers --orphans -o name # in the form that delete server takes"
	command.AddCommand(o.newListKindCommand("machines", "Show Machines with their servers, as list does", false), servers)
	return command
}

func (o *options) newListKindCommand(use, short string, servers bool) *cobra.Command {
	l := &listing{options: o, servers: servers}
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Long: short + `.

The projects are those of the MachineClasses in the namespace, unless --secret or flags name one.
READY is what the manager last reported about the Machine's Node. Values that could not be read are
"unknown"; the lines below the table say why. Healthy Machines of a class share a line below it.

Exit codes: 0 everything is known, 2 something is unknown, 64 wrong usage.`,
	}
	format, checkFormat := addOutputFlag(command, formatWide, formatJSON, "yaml", formatName)
	flags := command.Flags()
	flags.BoolVarP(&l.query.AllNamespaces, "all-namespaces", "A", false,
		"show all namespaces")
	if servers {
		flags.BoolVar(&l.orphans, "orphans", false, "only servers that no Machine of any namespace names")
	} else {
		flags.BoolVar(&l.all, "all", false, "show each healthy Machine in its own line")
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		l.format = *format
		if err := checkFormat(); err != nil {
			return err
		}
		return l.run(command.Context())
	}
	return command
}

func (l *listing) run(ctx context.Context) error {
	access, err := l.operator()
	if err != nil {
		return err
	}
	found := list.Read(ctx, access, l.query)
	if l.orphans {
		found.Servers = slices.DeleteFunc(found.Servers, func(server *list.Server) bool { return !server.IsOrphan() })
	}
	if err := l.print(found); err != nil {
		return err
	}
	return exitWith(unknownExitCode(found))
}

// unknownExitCode returns ExitUnknown if anything is unknown, else ExitFine.
func unknownExitCode(found *list.Result) int {
	if len(found.Unknown) > 0 {
		return report.ExitUnknown
	}
	return report.ExitFine
}

func (l *listing) print(found *list.Result) error {
	if l.format != "" && l.format != formatWide {
		for _, line := range append(found.Facts, found.Unknown...) {
			l.say("%s", line)
		}
		if l.servers {
			return printObjects(l.options, l.format, found.Servers)
		}
		return printObjects(l.options, l.format, found.Machines)
	}
	table, below := l.machinesTable(found)
	if l.servers {
		table, below = l.serversTable(found), nil
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: l.format == formatWide})
	if err := printer.PrintObj(table, l.streams.Out); err != nil {
		return err
	}
	for _, line := range slices.Concat(below, l.details(), found.Facts, found.Unknown) {
		if _, err := fmt.Fprintln(l.streams.Out, report.OneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// The values of -o that are handled by name; "" prints a table.
const (
	formatWide = "wide"
	formatName = "name"
	formatJSON = "json"
)

// object is a Machine or a Server.
type object interface {
	runtime.Object
	metav1.Object
}

// printObjects prints objects as JSON, YAML or names.
func printObjects[T object](o *options, format string, objects []T) error {
	all := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, each := range objects {
		all.Items = append(all.Items, runtime.RawExtension{Object: each})
		if format == formatName {
			kind := strings.ToLower(each.GetObjectKind().GroupVersionKind().Kind)
			if _, err := fmt.Fprintf(o.streams.Out, "%s/%s\n", kind, shownID(each)); err != nil {
				return err
			}
		}
	}
	if format == formatName {
		return nil
	}
	return printObject(o, format, all)
}

// printObject prints an object as JSON or YAML.
func printObject(o *options, format string, object any) error {
	printer, err := (&genericclioptions.JSONYamlPrintFlags{ShowManagedFields: true}).ToPrinter(format)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	// YAML's encoder reads JSON, and refuses control characters that JSON does not escape.
	return printer.PrintObj(&runtime.Unknown{Raw: withoutControls(raw)}, o.streams.Out)
}

// shownID is the name of an object; a server's ID is quoted where it is no UUID: nothing deletes such a server.
func shownID(of metav1.Object) string {
	if _, isServer := of.(*list.Server); isServer && !validation.IsUUID(of.GetName()) {
		return strconv.Quote(of.GetName())
	}
	return of.GetName()
}

// none is the cell without a value.
const none = "-"

// newTable returns a table with these columns; a name that starts with + is shown only by -o wide.
func newTable(names ...string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range names {
		name, wide := strings.CutPrefix(name, "+")
		column := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			column.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, column)
	}
	return table
}

// add adds a row about an object to the table, and keeps its notes for the lines below it. An empty text becomes none.
func (l *listing) add(to *metav1.Table, object metav1.Object, notes []list.Note, texts ...string) {
	var row metav1.TableRow
	for _, text := range texts {
		row.Cells = append(row.Cells, cmp.Or(report.OneLine(text), none))
	}
	to.Rows = append(to.Rows, row)
	for _, note := range notes {
		l.notes = append(l.notes, noted{shownID(object), note})
	}
}

// machinesTable has a row for each Machine and each server without one. Unless all is set, the healthy Machines of a
// class share a line below it: a row is one object.
func (l *listing) machinesTable(found *list.Result) (t *metav1.Table, folded []string) {
	namespace := "+Namespace"
	if l.query.AllNamespaces {
		namespace = "Namespace"
	}
	t = newTable(namespace, "Machine", "Class", "Phase", "Server", "State", "Ready", "Age", "Note", "+Cluster", "+Node")
	healthy := map[string]int{}
	alone := slices.Clone(found.Servers)
	for _, machine := range found.Machines {
		alone = slices.DeleteFunc(alone, func(s *list.Server) bool { return slices.Contains(machine.Servers, s) })
		if machine.IsHealthy() && !l.all {
			healthy[machine.Namespace+"/"+machine.Class]++
			continue
		}
		id := machine.Server
		if id != "" && id != list.Unknown {
			id = shownID(&list.Server{ObjectMeta: metav1.ObjectMeta{Name: id}})
		}
		l.add(t, machine, machine.Notes, machine.Namespace, machine.Name, machine.Class, machine.Phase, id, machine.State,
			string(machine.Ready), age(found.Time, machine), noteCell(machine.Notes), machine.Cluster, machine.Node)
	}
	for _, server := range alone {
		l.add(t, server, server.Notes, "", "", server.Class, "", shownID(server), server.State, "",
			age(found.Time, server), noteCell(server.Notes), server.Cluster, "")
	}
	for class, number := range healthy {
		folded = append(folded, fmt.Sprintf("%s ready of MachineClass %s, not shown without --all",
			report.Count(number, "Machine"), class))
	}
	slices.Sort(folded)
	return t, folded
}

func (l *listing) serversTable(found *list.Result) *metav1.Table {
	l.notes = nil
	t := newTable("Server", "Machine", "State", "Age", "Type", "Zone", "Note", "+Name", "+Namespace", "+Class", "+Cluster",
		"+Project", "+Region")
	for _, server := range found.Servers {
		l.add(t, server, server.Notes, shownID(server), server.Machine, server.State, age(found.Time, server),
			server.MachineType, server.Zone, noteCell(server.Notes), server.ServerName, server.MachineNamespace, server.Class,
			server.Cluster, server.ProjectID, server.Region)
	}
	return t
}

func age(now time.Time, object metav1.Object) string {
	created := object.GetCreationTimestamp()
	if created.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

func noteCell(notes []list.Note) string {
	var words []string
	for i := range notes {
		words = append(words, notes[i].String())
	}
	return strings.Join(slices.Compact(words), ", ")
}

// noted is a note and the name of its Machine or server.
type noted struct {
	name string
	note list.Note
}

// details returns lines about the notes. Notes of one kind with the same remedy share a line: a full quota stops many
// Machines at once. It shows the reason of the first.
func (l *listing) details() (lines []string) {
	for i, first := range l.notes {
		isAlike := func(other noted) bool {
			return other.note == first.note ||
				first.note.Cause != "" && other.note.String() == first.note.String() && other.note.Remedy == first.note.Remedy
		}
		if first.note.Kind == list.NoteUnknown || slices.IndexFunc(l.notes, isAlike) < i { // the lines of unknowns say it
			continue
		}
		var names []string
		for _, other := range l.notes {
			if isAlike(other) {
				names = append(names, other.name)
			}
		}
		line := fmt.Sprintf("%s (%s): %s", first.note.String(), report.Some(slices.Compact(names)), first.note.Reason)
		for _, part := range []string{first.note.Cause, first.note.Remedy} {
			if part != "" {
				line += "; " + part
			}
		}
		lines = append(lines, line)
	}
	return lines
}
