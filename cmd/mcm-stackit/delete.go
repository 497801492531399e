// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/redact"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/deleteserver"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// deleting is one run of delete server.
type deleting struct {
	*options
	ids     []string
	target  string
	context string
	dryRun  bool
	// controlHost and targetHost are the API servers in use.
	controlHost, targetHost string
}

func (o *options) newDeleteCommand() *cobra.Command {
	parent := &cobra.Command{Use: "delete", Short: "Delete orphaned servers", Args: noArguments, RunE: showHelp}
	d := &deleting{options: o}
	command := &cobra.Command{
		Use:   "server ID...",
		Short: "Delete servers that no Machine and no Node names",
		Long: `Deletes the servers whose IDs are given, as "list servers --orphans -o name" prints them, and waits until
they are gone. It is for migrations and restores, when the manager does not run: a running manager
deletes orphans itself. Each server is checked separately. It is refused unless

  no Machine of any namespace names it, by ProviderID, label or name, and a MachineClass of this cluster
    has its cluster label;
  no Node of the target cluster names it, by ID, name or address, Ready or not, and another Node there runs
    on a server with the same cluster label: otherwise the target may be the wrong cluster;
  it is older than an hour by the API's clock.

A server without the manager's labels, with two cluster labels of different values or with OpenStack's tag is
refused, too. The remaining servers are shown, and the value of their cluster label must be typed on a terminal.
Each server is checked again right before its DELETE, which is retried for 5 s if it fails.

Exit codes: 0 every server is gone; 1 a server was refused or is still there, or the deletion was not
confirmed; 2 a server was not found, or its outcome is unknown; 64 wrong usage. With --dry-run: 0 every server
may be deleted; 1 a server is refused; 2 a server was not found, or could not be read.`,
		Example: `  # Show which orphans would be deleted
  mcm-stackit delete server $(mcm-stackit list servers --orphans -o name) \
    --target-kubeconfig target.kubeconfig --dry-run

  # Delete a server, after the value of its cluster label is typed
  mcm-stackit delete server 6663fe53-a99a-4d61-9414-615ffeee9352 --target-kubeconfig target.kubeconfig`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := d.readArguments(args); err != nil {
				return err
			}
			// A closed pipe must not end the process while it waits for servers.
			signal.Ignore(syscall.SIGPIPE)
			// The first signal cancels the operation and reports outcomes; the second one ends the process.
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
	command.ValidArgsFunction = func(command *cobra.Command, ids []string, _ string) ([]string, cobra.ShellCompDirective) {
		return o.completeObjects(command, func(found *list.Result) []string {
			return serverIDs(slices.DeleteFunc(found.Servers, func(server *list.Server) bool {
				return !server.IsOrphan() || slices.Contains(ids, server.Name)
			}))
		})
	}
	flags := command.Flags()
	flags.StringVar(&d.target, "target-kubeconfig", "", "kubeconfig of the cluster that the machines join; required")
	flags.StringVar(&d.context, "target-context", "", "context of --target-kubeconfig (default: its current one)")
	flags.BoolVar(&d.dryRun, "dry-run", false, "show which servers would be deleted, and exit")
	parent.AddCommand(command)
	return parent
}

func (d *deleting) readArguments(ids []string) error {
	switch {
	case len(ids) == 0:
		return wrongUsage("no server IDs given: pass the IDs that list servers --orphans -o name prints")
	case d.target == "":
		return wrongUsage("--target-kubeconfig is missing: it is needed to check that no Node uses a server")
	case !d.dryRun && (!isTerminal(d.streams.In) || !isTerminal(d.streams.ErrOut)):
		return wrongUsage("standard input or error is not a terminal, so the deletion cannot be shown and confirmed: " +
			"--dry-run only shows which servers would be deleted")
	}
	for _, id := range ids {
		id = strings.TrimPrefix(id, "server/")
		if !validation.IsUUID(id) {
			return wrongUsage("%q is not a server ID: must be a UUID in lower case, or server/UUID", id)
		}
		if !slices.Contains(d.ids, id) {
			d.ids = append(d.ids, id)
		}
	}
	if len(d.ids) > deleteserver.MaxServers {
		return wrongUsage("%d servers given: must be at most %d at a time", len(d.ids), deleteserver.MaxServers)
	}
	return nil
}

func (d *deleting) run(ctx context.Context) error {
	access, err := d.connectBoth(ctx)
	if err != nil {
		return err
	}
	plan, err := deleteserver.Look(ctx, access, d.ids, func(read int) { d.progress("read", read, len(d.ids)) })
	if err != nil {
		return err
	}
	for _, problem := range plan.Problems {
		d.say("%v", problem)
	}
	for _, server := range plan.Servers {
		if server.Outcome != "" {
			d.report(server)
		}
	}
	left := plan.ToDelete()
	if len(left) == 0 {
		return exitWith(deletedExitCode(plan))
	}
	d.show(plan, left)
	if d.dryRun {
		return exitWith(deletedExitCode(plan))
	}
	cluster, err := onlyCluster(left)
	switch {
	case err != nil:
		return err
	case !d.confirm(ctx, len(left), cluster):
		d.say("Nothing was deleted.")
		return exitWith(report.ExitWrong)
	}
	deleted := 0
	plan.Delete(ctx, func(server *deleteserver.Server) {
		d.report(server)
		deleted++
		d.progress("done with", deleted, len(left))
	})
	return exitWith(deletedExitCode(plan))
}

// progress reports every tenth server, if there are more than ten: each takes time.
func (d *deleting) progress(what string, number, of int) {
	if of > 10 && number%10 == 0 {
		d.say("%s %d of %d servers", what, number, of)
	}
}

// onlyCluster returns the value of the servers' cluster label. It is an error if they belong to several clusters.
func onlyCluster(servers []*deleteserver.Server) (string, error) {
	var values []string
	for _, server := range servers {
		values = slices.AppendSeq(values, maps.Values(account.ClusterLabels(server.Shown.Labels)))
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) > 1 {
		return "", fmt.Errorf("the servers belong to %d clusters: %s; delete the servers of one cluster at a time",
			len(values), report.OneLine(strings.Join(values, ", ")))
	}
	return values[0], nil
}

// connectBoth connects to the control cluster and to the target cluster.
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
	d.controlHost = control.Host
	target, err := d.targetConfig()
	if err != nil {
		return nil, fmt.Errorf("reading --target-kubeconfig %s: %w", d.target, redact.Error(err))
	}
	d.targetHost, target.Timeout = target.Host, control.Timeout
	access.Target, err = d.newClient(ctx, target)
	return access, err
}

// targetConfig reads only the file of --target-kubeconfig: for an empty file, the usual loading rules would fall back
// to a pod's own cluster.
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
		return nil, errors.New("the kubeconfig has no cluster, or no current context: add one, or set --target-context")
	}
	return config, err
}

// show prints the servers to delete, and how many Machines and Nodes were checked for references.
func (d *deleting) show(plan *deleteserver.Plan, servers []*deleteserver.Server) {
	table := printers.GetNewTabWriter(d.streams.ErrOut)
	_, _ = fmt.Fprintln(table, "SERVER\tNAME\tAGE\tSTATE\tCLUSTER\tCLASS\tPROJECT\tREGION\tWHY")
	for _, server := range servers {
		shown := server.Shown
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\tno Machine and no Node names it\n",
			server.ID, report.OneLine(shown.Name), duration.HumanDuration(server.Date.Sub(shown.CreatedAt)),
			report.OneLine(shown.Status), report.OneLine(server.Cluster()),
			report.OneLine(shown.Labels[provider.StackitMachineClassLabel]), server.At.Session.ProjectID, server.At.Region)
	}
	_ = table.Flush()
	where := " (after a restore, running servers may have lost their Machines)"
	if len(plan.Namespaces) > 0 {
		where = " in " + report.Some(plan.Namespaces)
	}
	d.say("Context %s (%s) has %s with servers of this cluster%s; %s has %s.", d.contextName(), d.controlHost,
		report.Count(plan.Machines, "Machine"), where, d.targetHost, report.Count(plan.Nodes, "Node"))
}

// confirm asks for confirmation by typing the cluster's name, so that the user has read which cluster it is.
func (d *deleting) confirm(ctx context.Context, number int, cluster string) bool {
	_, _ = fmt.Fprintf(d.streams.ErrOut, "Delete %s of cluster %s? Type the cluster's name: ",
		report.Count(number, "server"), report.OneLine(cluster))
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(d.streams.In).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text == cluster
	case <-ctx.Done():
		return false
	}
}

// report prints the outcome of a server.
func (d *deleting) report(server *deleteserver.Server) {
	text := fmt.Sprintf("server/%s %s", server.ID, server.Outcome)
	if server.Reason != "" {
		text += ": " + server.Reason
	}
	_, _ = fmt.Fprintln(d.streams.Out, report.OneLine(text))
}

// deletedExitCode returns the exit code for the servers' outcomes.
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

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
