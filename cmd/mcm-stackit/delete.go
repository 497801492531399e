// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/deleteserver"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

const (
	defaultOlderThan = time.Hour
	// leastOlderThan is the manager's creation timeout: younger servers may be in the making.
	leastOlderThan = 20 * time.Minute
)

// deleting is one run of delete server.
type deleting struct {
	*options
	delete       deleteserver.Options
	clusters     []string
	target       string
	context      string
	withoutNodes bool
	yes          bool
	// The API servers that were asked.
	controlHost, targetHost string
}

func (o *options) newDeleteCommand() *cobra.Command {
	parent := &cobra.Command{Use: "delete", Short: "Delete servers that nobody needs", Args: cobra.NoArgs, RunE: showHelp}
	d := &deleting{options: o}
	command := &cobra.Command{
		Use:   "server ID...",
		Short: "Delete servers that no Machine and no working Node names",
		Long: `Deletes the servers whose IDs are given, as "list servers --orphans -o name" prints them, and waits until
they are gone. It is for migrations and restores, when the manager does not run: a manager that runs
deletes orphans itself. Each server is checked by itself. Refused is one

  that is no orphan: a Machine of any namespace names it by ProviderID, label or name; it lacks a label
    of the manager's; or it is of a cluster that neither a MachineClass here nor --cluster names;
  whose name is not its machine label; or that has a tag kubernetes.io-cluster-... of OpenStack's;
  that is younger than --older-than by the API's clock;
  that a Node of the target cluster names, if that is Ready, or was less than --older-than ago.

It needs the cluster with the Machines, and either --target-kubeconfig or --without-nodes. All is looked
at once more right before each DELETE.

Exit codes: 0 every server is gone; 1 one was refused or is still there, or the answer was no; 2 one was
not found, or what became of it is unknown; 64 wrong usage.`,
		Example: `  # Delete a server, after a question
  mcm-stackit delete server 6663fe53-a99a-4d61-9414-615ffeee9352 --target-kubeconfig target.kubeconfig

  # Delete up to ten orphans without a question
  mcm-stackit delete server $(mcm-stackit list servers --orphans -o name) --target-kubeconfig target.kubeconfig --yes`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := d.readArguments(args); err != nil {
				return err
			}
			// A closed pipe must not end the process, which waits for servers, too.
			signal.Ignore(syscall.SIGPIPE)
			// The first signal ends what is being done, and tells what became of it; the second the process.
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop)
			err := d.run(ctx)
			if ctx.Err() != nil {
				d.say("interrupted")
				return exitWith(report.ExitUnknown)
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&d.target, "target-kubeconfig", "", "file that reaches the cluster that the machines join")
	flags.StringVar(&d.context, "target-context", "", "context of --target-kubeconfig (default: its current one)")
	flags.BoolVar(&d.withoutNodes, "without-nodes", false, "look at no Nodes: the cluster that the machines join is gone")
	flags.DurationVar(&d.delete.OlderThan, "older-than", defaultOlderThan,
		"least age of a server that is deleted, at least 20m")
	flags.StringArrayVar(&d.clusters, "cluster", nil,
		"label key=value of a cluster whose MachineClasses are gone; may be repeated")
	flags.BoolVarP(&d.yes, "yes", "y", false,
		"do not ask; at most 10 servers, of clusters of which the target cluster has a Node")
	parent.AddCommand(command)
	return parent
}

func (d *deleting) readArguments(ids []string) error {
	switch {
	case len(ids) == 0:
		return wrongUsage("no server is named: give IDs, as list servers --orphans -o name prints them")
	case (d.target != "") == d.withoutNodes:
		return wrongUsage("give either --target-kubeconfig or --without-nodes")
	case d.yes && d.withoutNodes:
		return wrongUsage("--yes works only with --target-kubeconfig: without Nodes somebody must be asked")
	case !d.yes && !isTerminal(d.streams.In):
		return wrongUsage("standard input is no terminal, and nobody can be asked: --yes deletes without a question")
	case d.delete.OlderThan < leastOlderThan:
		return wrongUsage("--older-than must be at least %s, the manager's creation timeout", leastOlderThan)
	}
	for _, id := range ids {
		id = strings.TrimPrefix(id, "server/")
		if !validation.IsUUID(id) {
			return wrongUsage("%q is no server ID: must be a UUID in lower case, or server/UUID", id)
		}
		if !slices.Contains(d.delete.IDs, id) {
			d.delete.IDs = append(d.delete.IDs, id)
		}
	}
	for _, label := range d.clusters {
		cluster, err := account.ParseClusterLabel(label)
		if err != nil {
			return wrongUsage("--cluster: %v", err)
		}
		d.delete.Clusters = append(d.delete.Clusters, cluster)
	}
	return nil
}

func (d *deleting) run(ctx context.Context) error {
	access, err := d.connectBoth(ctx)
	if err != nil {
		return err
	}
	plan, err := deleteserver.Look(ctx, access, d.delete)
	if err != nil {
		return err
	}
	for _, problem := range plan.Problems {
		d.say("%v", problem)
	}
	if d.yes {
		plan.RefuseUnasked()
	}
	for _, server := range plan.Servers {
		if server.Outcome != "" {
			d.report(server)
		}
	}
	if left := plan.ToDelete(); len(left) > 0 {
		d.show(plan, left)
		if !d.yes && !d.confirm(ctx, len(left)) {
			d.say("Nothing was deleted.")
			return exitWith(report.ExitWrong)
		}
		plan.Delete(ctx, d.report)
	}
	return exitWith(deletedExitCode(plan))
}

// connectBoth reaches the control cluster, and the target cluster unless Nodes are not to be looked at.
func (d *deleting) connectBoth(ctx context.Context) (*account.Access, error) {
	access, err := d.operator(ctx)
	if err != nil {
		return nil, err
	}
	if access.ControlError != nil {
		return nil, access.ControlError
	}
	control, err := d.control.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	d.controlHost, access.Target = control.Host, nil
	if d.withoutNodes {
		return access, nil
	}
	target, err := d.targetConfig()
	if err != nil {
		return nil, fmt.Errorf("reading --target-kubeconfig %s: %w", d.target, err)
	}
	d.targetHost, target.Timeout = target.Host, control.Timeout
	access.Target, err = d.newClient(ctx, target)
	return access, err
}

// targetConfig reads the file of --target-kubeconfig, and nothing else: in a pod, the usual loading
// rules would take the pod's own cluster for an empty file.
func (d *deleting) targetConfig() (*rest.Config, error) {
	file, err := clientcmd.LoadFromFile(d.target)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	loader := clientcmd.NewNonInteractiveClientConfig(*file, d.context, &clientcmd.ConfigOverrides{}, nil)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("it names no cluster, or has no current context: set --target-context")
	}
	return config, err
}

// show says what is deleted, and by what was decided that nobody needs it.
func (d *deleting) show(plan *deleteserver.Plan, servers []*deleteserver.Server) {
	table := printers.GetNewTabWriter(d.streams.ErrOut)
	_, _ = fmt.Fprintln(table, "SERVER\tNAME\tSTATE\tAGE\tCLUSTER\tPROJECT\tREGION")
	for _, server := range servers {
		shown := server.Shown
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", server.ID, report.OneLine(shown.Name), shown.Status,
			duration.HumanDuration(server.Date.Sub(shown.CreatedAt)), report.OneLine(server.Cluster()),
			server.At.Session.ProjectID, server.At.Region)
	}
	_ = table.Flush()
	name := *d.control.Context
	if raw, err := d.control.ToRawKubeConfigLoader().RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	where := ", and after a restore the servers that work have none"
	if len(plan.Namespaces) > 0 {
		where = " in " + report.Some(plan.Namespaces)
	}
	d.say("No Machine names them: context %s (%s) has %s%s.",
		name, d.controlHost, report.Count(plan.Machines, "Machine"), where)
	if d.withoutNodes {
		d.say("Whether a Node works on them was not looked at (--without-nodes).")
		return
	}
	d.say("No Node that works is one of them: %s has %s.", d.targetHost, report.Count(plan.Nodes, "Node"))
	for _, cluster := range slices.Sorted(maps.Keys(plan.ClusterNodes)) {
		if plan.ClusterNodes[cluster] == 0 {
			d.say("0 of %s are servers of %s: is this the right cluster?", report.Count(plan.Nodes, "Node"), cluster)
		}
	}
}

// confirm asks whether to delete so many servers.
func (d *deleting) confirm(ctx context.Context, number int) bool {
	want := "yes"
	if number > deleteserver.MaxUnasked {
		want = strconv.Itoa(number)
	}
	_, _ = fmt.Fprintf(d.streams.ErrOut, "Delete %s? Type %s: ", report.Count(number, "server"), want)
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(d.streams.In).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text == want
	case <-ctx.Done():
		return false
	}
}

// report says what became of a server.
func (d *deleting) report(server *deleteserver.Server) {
	text := fmt.Sprintf("server/%s %s", server.ID, server.Outcome)
	if server.Reason != "" {
		text += ": " + server.Reason
	}
	_, _ = fmt.Fprintln(d.streams.Out, report.OneLine(text))
}

// deletedExitCode says whether every server is gone.
func deletedExitCode(plan *deleteserver.Plan) int {
	code := report.ExitFine
	for _, server := range plan.Servers {
		switch server.Outcome {
		case deleteserver.NotFound, deleteserver.Unknown:
			return report.ExitUnknown
		case deleteserver.Refused, deleteserver.StillThere:
			code = report.ExitWrong
		case deleteserver.Gone:
		}
	}
	return code
}

func isTerminal(stream io.Reader) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
