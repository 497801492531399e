// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// deleting is one run of delete server.
type deleting struct {
	*options
	ids    []string
	target string
	dryRun bool
}

func (o *options) newDeleteCommand() *cobra.Command {
	parent := &cobra.Command{Use: "delete", Short: "Delete orphaned servers", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() }}
	d := &deleting{options: o}
	command := &cobra.Command{
		Use:   "server ID...",
		Short: "Delete servers that no Machine and no Node names",
		Long: `Deletes the servers whose IDs are given, one after the other, and waits until each is gone. It is for
migrations and restores, when the manager does not run: a running manager deletes orphans itself. A server
is refused unless

  no Machine of any namespace names it, by ProviderID, label or name, and a MachineClass of this cluster
    has its cluster label;
  no Node of the target cluster names it, by ID, name or address, and another Node there runs on a server
    with the same cluster label: otherwise the target may be the wrong cluster;
  it is older than an hour by the API's clock.

A server without the manager's labels, with cluster labels of different values, with OpenStack's tag or
without addresses is refused, too. The others are shown, and the value of their cluster label must be typed
on a terminal. Each is judged again right before its DELETE.

Exit codes: 0 every server is gone, or may go; 1 one is refused or still there, or the deletion was not
confirmed; 2 one was not found, or its outcome is unknown; 64 wrong usage.`,
		Example: `  mcm-stackit delete server $(mcm-stackit list servers -n default --orphans -o name) -n default \
    --target-kubeconfig target.kubeconfig --dry-run`,
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
		ValidArgsFunction: func(command *cobra.Command, ids []string, _ string) ([]string, cobra.ShellCompDirective) {
			return o.completeObjects(command, func(found *list.Result) []string {
				return serverIDs(slices.DeleteFunc(found.Servers, func(server *list.Server) bool {
					return !server.IsOrphan() || slices.Contains(ids, server.Name)
				}))
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&d.target, "target-kubeconfig", "", "kubeconfig of the cluster that the machines join; required")
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
	return nil
}

func (d *deleting) run(ctx context.Context) error {
	access, err := d.connectBoth()
	if err != nil {
		return err
	}
	deletion, problems, err := deleteserver.New(ctx, access)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		d.say("%v", problem)
	}
	var judged, left []*deleteserver.Server
	for _, id := range d.ids {
		server, err := deletion.Judge(ctx, id)
		if err != nil {
			return err
		}
		judged = append(judged, server)
		if server.Outcome == "" {
			left = append(left, server)
		} else {
			d.report(server)
		}
	}
	if len(left) == 0 {
		return exitWith(deletedExitCode(judged))
	}
	d.show(left)
	if d.dryRun {
		return exitWith(deletedExitCode(judged))
	}
	cluster, err := onlyCluster(left)
	switch {
	case err != nil:
		return err
	case !d.confirm(ctx, len(left), cluster):
		d.say("Nothing was deleted.")
		return exitWith(report.ExitWrong)
	}
	for _, server := range left {
		deletion.Delete(ctx, server)
		d.report(server)
	}
	return exitWith(deletedExitCode(judged))
}

// onlyCluster returns the value of the servers' cluster label. It is an error if they belong to several clusters.
func onlyCluster(servers []*deleteserver.Server) (string, error) {
	var values []string
	for _, server := range servers {
		values = append(values, account.ClusterValues(server.Evidence.Server.Labels)...)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) != 1 {
		return "", fmt.Errorf("the servers belong to %d clusters: %s; delete the servers of one cluster at a time",
			len(values), strings.Join(values, ", "))
	}
	return values[0], nil
}

// connectBoth connects to the control cluster and to the target cluster.
func (d *deleting) connectBoth() (*account.Access, error) {
	access, err := d.operator()
	if err != nil {
		return nil, err
	}
	if access.ControlError != nil {
		return nil, access.ControlError
	}
	target, err := targetConfig(d.target)
	if err != nil {
		return nil, fmt.Errorf("reading --target-kubeconfig %s: %w", d.target, redact.Error(err))
	}
	target.Timeout = d.requestTimeout
	access.Target, err = newClient(target)
	return access, err
}

// targetConfig reads only the file: for an empty one, the usual loading rules would fall back to a pod's own cluster.
func targetConfig(path string) (*rest.Config, error) {
	file, err := clientcmd.LoadFromFile(path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(file)
	}
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*file, "", nil, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("the kubeconfig has no cluster, or no current context")
	}
	return config, err
}

// show prints the servers to delete, and what they were judged by.
func (d *deleting) show(servers []*deleteserver.Server) {
	table := printers.GetNewTabWriter(d.streams.ErrOut)
	_, _ = fmt.Fprintln(table, "SERVER\tNAME\tAGE\tSTATE\tCLUSTER\tPROJECT\tREGION\tWHY")
	for _, server := range servers {
		shown := server.Evidence.Server
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\tno Machine and no Node names it\n", server.ID,
			report.OneLine(shown.Name), duration.HumanDuration(server.Evidence.Date.Sub(shown.CreatedAt)),
			report.OneLine(shown.Status), report.OneLine(account.ClusterText(account.ClusterLabels(shown.Labels))),
			server.At.Session.ProjectID, server.At.Region)
	}
	_ = table.Flush()
	last := &servers[len(servers)-1].Evidence
	d.say("Context %s has %s in all namespaces; after a restore, running servers may have lost theirs. The target has %s.",
		d.contextName(), report.Count(len(last.Machines), "Machine"), report.Count(len(last.Nodes), "Node"))
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

// deletedExitCode returns the exit code for the servers' outcomes: the highest.
func deletedExitCode(servers []*deleteserver.Server) (code int) {
	codes := map[deleteserver.Outcome]int{
		deleteserver.Refused: report.ExitWrong, deleteserver.StillThere: report.ExitWrong,
		deleteserver.NotFound: report.ExitUnknown, deleteserver.Unknown: report.ExitUnknown}
	for _, server := range servers {
		code = max(code, codes[server.Outcome])
	}
	return code
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
