// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// listing is one run of list.
type listing struct {
	*options
	servers bool
	output  string
	cluster string
	orphans bool
	all     bool
	query   list.Query
}

const listLong = `%s

The projects are those of the MachineClasses in the namespace, unless --secret or flags name one.
Clusters and API are read in parallel, for at most --request-timeout. Values that could not be read
are "unknown"; the lines below the table say why.%s

Exit codes: 0 everything is known, 2 something is unknown, 64 wrong usage.`

// listMachinesLong is the part of listLong about Machines.
const listMachinesLong = ` READY is what the manager last reported about the Machine's
Node: the target cluster is not read. Ready Machines of a class share one line if they have no notes,
unless --all is given.`

func (o *options) newListCommand() *cobra.Command {
	command := o.newListKindCommand("list", "Show Machines with their servers",
		`  # The Machines of a namespace; below them, why some are stuck, and the remedies
  mcm-stackit list -n default

  # The Machines of all namespaces, every 10 seconds:
  #   watch -n 10 mcm-stackit list -A
  mcm-stackit list -A

  # All their data, for jq
  mcm-stackit list -o json`, false)
	command.AddCommand(
		o.newListKindCommand("machines", "Show Machines with their servers, as list does",
			"  mcm-stackit list machines -n default", false),
		o.newListKindCommand("servers", "Show the servers of the namespace's clusters",
			`  # The servers of the clusters that a namespace's MachineClasses name
  mcm-stackit list servers -n default

  # The servers of one cluster, even if its MachineClasses are gone
  mcm-stackit list servers --cluster kubernetes.io/cluster=shoot--demo--laptop -o wide

  # Servers that no Machine names, in the form that delete server takes
  mcm-stackit list servers --orphans -o name`, true))
	return command
}

func (o *options) newListKindCommand(use, short, example string, servers bool) *cobra.Command {
	l := &listing{options: o, servers: servers}
	about := listMachinesLong
	if servers {
		about = ""
	}
	command := &cobra.Command{
		Use: use, Short: short, Long: fmt.Sprintf(listLong, short+".", about), Example: example, Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if l.output != "" && !slices.Contains(formats, l.output) {
				return wrongUsage("-o must be one of: %s", strings.Join(formats, ", "))
			}
			if l.cluster != "" {
				var err error
				if l.query.Cluster, err = account.ParseClusterLabel(l.cluster); err != nil {
					return wrongUsage("--cluster: %v", err)
				}
			}
			return l.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&l.output, "output", "o", "", "print as one of: "+strings.Join(formats, ", "))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&l.cluster, "cluster", "",
		"show only the cluster with this label: key=value, with a key that ends in /cluster")
	flags.BoolVarP(&l.query.AllNamespaces, "all-namespaces", "A", false,
		"show all namespaces, and read the projects of all their MachineClasses")
	if servers {
		flags.BoolVar(&l.orphans, "orphans", false, "only servers that no Machine of any namespace names")
	} else {
		flags.BoolVar(&l.all, "all", false,
			"show each Machine in its own line; by default, ready Machines of a class without notes share one")
	}
	return command
}

func (l *listing) run(ctx context.Context) error {
	access, err := l.operator(ctx)
	if err != nil {
		return err
	}
	found := list.Read(ctx, access, l.query)
	if l.orphans {
		found.Servers = slices.DeleteFunc(found.Servers, func(server *list.Server) bool { return !server.IsOrphan() })
		found.NotChecked = nil
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
	if l.output != "" && l.output != formatWide {
		for _, unknown := range found.Unknown {
			l.say("%s", unknown)
		}
		if l.servers {
			return printObjects(l.options, l.output, found.Servers)
		}
		return printObjects(l.options, l.output, found.Machines)
	}
	table := machinesTable(found, l.query.AllNamespaces, l.all)
	if l.servers {
		table = serversTable(found)
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: l.output == formatWide})
	if err := printer.PrintObj(table, l.streams.Out); err != nil {
		return err
	}
	_, err := io.WriteString(l.streams.Out, belowTable(found, l.servers, l.query.AllNamespaces))
	return err
}

// The values of -o that this file handles by name; "" prints a table.
const (
	formatWide = "wide"
	formatName = "name"
	formatJSON = "json"
)

// formats are all values of -o.
var formats = []string{formatWide, formatJSON, "yaml", formatName}

// object is a Machine or a Server.
type object interface {
	runtime.Object
	metav1.Object
}

// printObjects prints objects as JSON, YAML or names.
func printObjects[T object](o *options, format string, objects []T) error {
	if format == formatName {
		for _, each := range objects {
			kind := strings.ToLower(each.GetObjectKind().GroupVersionKind().Kind)
			name := each.GetName()
			if _, isServer := runtime.Object(each).(*list.Server); isServer {
				name = shownID(name)
			}
			if _, err := fmt.Fprintf(o.streams.Out, "%s/%s\n", kind, name); err != nil {
				return err
			}
		}
		return nil
	}
	all := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, each := range objects {
		all.Items = append(all.Items, runtime.RawExtension{Object: each})
	}
	printer, err := (&genericclioptions.JSONYamlPrintFlags{ShowManagedFields: true}).ToPrinter(format)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	// YAML's encoder reads JSON, and refuses control characters that JSON does not escape.
	return printer.PrintObj(&runtime.Unknown{Raw: withoutControls(raw)}, o.streams.Out)
}

// shownID is a server's ID, quoted where it is no UUID: nothing deletes such a server.
func shownID(id string) string {
	if id == "" || id == list.Unknown || validation.IsUUID(id) {
		return id
	}
	return strconv.Quote(id)
}

// none is the cell without a value.
const none = "-"

// columns returns columns with these names; a name that starts with + is shown only by -o wide.
func columns(names ...string) []metav1.TableColumnDefinition {
	var all []metav1.TableColumnDefinition
	for _, name := range names {
		name, wide := strings.CutPrefix(name, "+")
		column := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			column.Priority = 1
		}
		all = append(all, column)
	}
	return all
}

// row returns a row with a cell for each text; an empty text becomes none.
func row(texts ...string) metav1.TableRow {
	var row metav1.TableRow
	for _, text := range texts {
		row.Cells = append(row.Cells, cmp.Or(cell(text), none))
	}
	return row
}

// maxCell is the maximum length of a cell in characters: a ProviderID has 86.
const maxCell = 200

func cell(text string) string {
	if shown := []rune(report.OneLine(text)); len(shown) > maxCell {
		return string(shown[:maxCell]) + "…"
	}
	return report.OneLine(text)
}

// machinesTable has a row for each Machine. Unless all is set, the healthy Machines of a class share one row.
func machinesTable(found *list.Result, allNamespaces, all bool) *metav1.Table {
	namespace := "+Namespace"
	if allNamespaces {
		namespace = "Namespace"
	}
	t := &metav1.Table{ColumnDefinitions: columns(namespace, "Machine", "Class", "Phase", "Server", "State", "Ready",
		"Age", "Note", "+Cluster", "+Node")}
	type class struct{ namespace, name, phase string }
	healthy := map[class][]*list.Machine{}
	for _, machine := range found.Machines {
		if of := (class{machine.Namespace, machine.Class, machine.Phase}); machine.IsHealthy() && !all {
			healthy[of] = append(healthy[of], machine)
		}
	}
	for _, machine := range found.Machines {
		alike := healthy[class{machine.Namespace, machine.Class, machine.Phase}]
		switch {
		case len(alike) < 2 || !machine.IsHealthy():
		case machine == alike[0]:
			t.Rows = append(t.Rows, row(machine.Namespace, report.Count(len(alike), "Machine")+" ready", machine.Class,
				machine.Phase, "", machine.State, string(machine.Ready), "", "", machine.Cluster, ""))
			continue
		default:
			continue
		}
		t.Rows = append(t.Rows, row(machine.Namespace, machine.Name, machine.Class, machine.Phase, shownID(machine.Server),
			machine.State, string(machine.Ready), age(found.Time, machine.CreationTimestamp.Time), noteCell(machine.Notes),
			machine.Cluster, machine.Node))
	}
	return t
}

func serversTable(found *list.Result) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: columns("Server", "Machine", "State", "Age", "Type", "Zone", "Note", "+Name",
		"+Namespace", "+Class", "+Cluster", "+Project", "+Region")}
	for _, server := range found.Servers {
		t.Rows = append(t.Rows, row(shownID(server.Name), server.Machine, server.State,
			age(found.Time, server.CreationTimestamp.Time), server.MachineType, server.Zone, noteCell(server.Notes),
			server.ServerName, server.MachineNamespace, server.Class, server.Cluster, server.ProjectID, server.Region))
	}
	return t
}

func age(now, created time.Time) string {
	if created.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(created))
}

func noteCell(notes []list.Note) string {
	var words []string
	for i := range notes {
		if word := notes[i].String(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// belowTable returns the text below a table: explanations of notes, what is unknown, and counts per cluster.
func belowTable(found *list.Result, servers, allNamespaces bool) string {
	var text strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&text, format+"\n", args...) }
	for _, detail := range details(found, servers, allNamespaces) {
		line("\n%v", detail)
	}
	if text.Len() > 0 || len(found.Machines)+len(found.Servers) > 0 {
		line("")
	}
	for _, stale := range found.Stale {
		line("%s", stale)
	}
	for _, label := range slices.Sorted(maps.Keys(found.NotChecked)) {
		line("%s: %s, no MachineClass here: not classified", cmp.Or(report.OneLine(label), "no cluster label"),
			report.Count(found.NotChecked[label], "server"))
	}
	for _, place := range slices.Sorted(maps.Keys(found.Read)) {
		line("%s read in %s", report.Count(found.Read[place], "server"), place)
	}
	for _, unknown := range found.Unknown {
		line("%s", unknown)
	}
	for _, cluster := range found.Clusters {
		line("%s", clusterLine(found, cluster))
	}
	return text.String()
}

// clusterLine formats the counts of a cluster.
func clusterLine(found *list.Result, cluster *list.Cluster) string {
	parts := []string{"Machines unknown", "ready unknown", "servers unknown"}
	if found.MachinesRead {
		parts[0], parts[1] = report.Count(cluster.Machines, "Machine"), fmt.Sprintf("%d ready", cluster.Ready)
		if cluster.Stale {
			parts[1] = fmt.Sprintf("%d were ready", cluster.Ready)
		}
	}
	if found.ServersRead {
		parts[2] = report.Count(cluster.Servers, "server")
	}
	if cluster.Label == "" {
		return "no cluster label: " + strings.Join(parts, ", ")
	}
	orphans := "orphans unknown"
	if found.OrphansRead {
		orphans = report.Count(cluster.Orphans, "orphan")
	}
	return report.OneLine(cluster.Label) + ": " + strings.Join(append(parts, orphans), ", ")
}

// detail is a note that some Machines or servers share.
type detail struct {
	note list.Note
	// whose has the names of the Machines, or the IDs of the servers.
	whose []string
}

// String formats the note, with the names in one line.
func (d *detail) String() string {
	lines := []string{report.OneLine(d.note.String())}
	for _, line := range [][2]string{
		{"of", report.Some(d.whose)}, {"reason", d.note.Reason}, {"cause", d.note.Cause}, {"remedy", d.note.Remedy},
	} {
		if line[1] != "" {
			lines = append(lines, fmt.Sprintf("  %-7s %s", line[0]+":", report.OneLine(line[1])))
		}
	}
	return strings.Join(lines, "\n")
}

// details groups the notes of the Machines or servers by cause and remedy: a full quota stops many Machines at once. A
// group shows the reason of its first note. Two notes of one Machine, about two servers, stay apart: their reasons
// differ.
func details(found *list.Result, servers, allNamespaces bool) []*detail {
	var all []*detail
	add := func(whose string, notes []list.Note) {
		for _, note := range notes {
			if note.Reason == "" || note.Kind == list.NoteUnknown {
				continue
			}
			same := slices.IndexFunc(all, func(other *detail) bool {
				return other.note.Kind == note.Kind && other.note.About == note.About &&
					other.note.Cause == note.Cause && other.note.Remedy == note.Remedy && !slices.Contains(other.whose, whose)
			})
			if same < 0 {
				same, all = len(all), append(all, &detail{note: note})
			}
			all[same].whose = append(all[same].whose, whose)
		}
	}
	if servers {
		for _, server := range found.Servers {
			add(shownID(server.Name), server.Notes)
		}
		return all
	}
	for _, machine := range found.Machines {
		name := machine.Name
		if allNamespaces {
			name = machine.Namespace + "/" + name
		}
		add(name, machine.Notes)
	}
	return all
}
