// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// defaultOlderThan is the age from which clean takes a server for an orphan: by then the
// manager's own collector has seen it, if it runs.
const defaultOlderThan = 10 * time.Minute

// Limits of clean, unless flags say otherwise.
const (
	defaultMax     = 10
	defaultTimeout = 10 * time.Minute
)

func (o *options) newCleanCommand() *cobra.Command {
	c := &cleaning{options: o}
	var cluster string
	command := &cobra.Command{
		Use:   "clean --cluster KEY=VALUE [SERVER-ID...]",
		Short: "Delete a cluster's servers that no Machine names",
		Long: `Deletes orphans: servers that carry the given cluster label and the manager's labels, and
that no Machine names. It shows them, asks, deletes them as the driver does, and waits until
they are gone. Server IDs narrow it down to these. What a Machine or a Node of the target
cluster names, it never deletes.

It needs the cluster with the Machines, and is sure that it is the right one if a Machine there
names a server with the label by its ProviderID, and a Node of --target-kubeconfig is one of
these servers. --yes is enough then, for at most half of the servers and --max. Else the
cluster's name and the number of servers must be typed on a terminal; where no Machine names a
server, with the servers' IDs as arguments.

Exit codes: 0 nothing is left to delete, or --dry-run; 1 a server is not deleted that should
be, or the answer was no; 2 it could not be told what is an orphan, or what became of one; 64
wrong usage.`,
		Example: `  # What would be deleted
  mcm-stackit clean --cluster kubernetes.io/cluster=shoot--demo--laptop --dry-run

  # Delete what is older than an hour, without asking
  mcm-stackit clean --cluster kubernetes.io/cluster=shoot--demo--laptop --target-kubeconfig target.kubeconfig --older-than 1h --yes`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := c.readArguments(cluster, args); err != nil {
				return err
			}
			command.Flags().Visit(func(flag *pflag.Flag) {
				c.given = append(c.given, flagArguments(flag)...)
			})
			return c.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&cluster, "cluster", "", "label of the cluster, as key=value; the key ends in /cluster. Required")
	flags.DurationVar(&c.clean.OlderThan, "older-than", defaultOlderThan, "least age of a server that is deleted")
	flags.IntVar(&c.clean.Max, "max", defaultMax, "most servers that --yes deletes; never a part of them")
	flags.StringSliceVar(&c.clean.Namespaces, "namespaces", nil,
		"namespaces whose MachineClasses and Machines are read where you may not read those of all; the cluster's name must be typed then")
	flags.BoolVar(&c.dryRun, "dry-run", false, "show what would be deleted, and end")
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask, and leave alone what must be asked for")
	flags.BoolVar(&c.wait, "wait", true, "wait until the servers are gone")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to delete and wait, all servers together")
	c.output.addTo(command, formatJSON, formatYAML)
	return command
}

func (c *cleaning) readArguments(cluster string, servers []string) error {
	key, value, err := account.ParseClusterLabel(cluster)
	switch {
	case err != nil:
		return wrongUsage("--cluster: %v", err)
	case c.clean.OlderThan < 0:
		return wrongUsage("--older-than must not be negative")
	case c.clean.Max < 0:
		return wrongUsage("--max must not be negative")
	case c.timeout <= 0:
		return wrongUsage("--timeout must be more than 0")
	}
	for _, id := range servers {
		if !validation.IsUUID(id) {
			return wrongUsage("%q is no server ID: must be a UUID in lower case", id)
		}
	}
	c.clean.ClusterKey, c.clean.ClusterValue, c.clean.ServerIDs = key, value, servers
	return nil
}

// cleaned is what -o json and yaml show.
type cleaned struct {
	*clean.Plan
	Deletions []clean.Deletion `json:"deletions"`
}

func (c *cleaning) run(ctx context.Context) error {
	o, err := c.operator(ctx, true)
	if err != nil {
		return err
	}
	if c.targetKubeconfig == "" {
		o.Target = nil // only a target that is named proves anything
	}
	progress := c.progress()
	progress.show("reading servers and Machines")
	plan, err := clean.Make(ctx, o, c.clean)
	progress.show("")
	if err != nil {
		return err
	}
	if c.dryRun {
		c.show(plan)
		_, err := c.printAs(c.output, cleaned{Plan: plan, Deletions: []clean.Deletion{}})
		return err
	}
	says, refused := c.restrict(plan)
	c.show(plan)
	result := cleaned{Plan: plan, Deletions: []clean.Deletion{}}
	if refused == nil && len(plan.Orphans) > 0 {
		if refused = c.confirm(ctx, plan, says); refused == nil {
			result.Deletions = c.delete(ctx, plan, says, progress)
		}
	}
	if _, err := c.printAs(c.output, result); err != nil || refused != nil {
		return errors.Join(refused, err)
	}
	return c.verdictOf(result)
}

// restrict leaves what can be deleted by what the user can say: --yes, or what is typed on a
// terminal.
func (c *cleaning) restrict(plan *clean.Plan) (clean.Consent, error) {
	says := clean.Flag
	if !c.yes && isTerminal(c.streams.In) {
		says = clean.Typed
		if len(c.clean.ServerIDs) > 0 {
			says = clean.TypedWithIDs
		}
	}
	plan.Allow(says)
	if !c.yes && !isTerminal(c.streams.In) && len(plan.Orphans) > 0 {
		return says, wrongUsage("standard input is no terminal: --yes deletes without asking, --dry-run shows what would be deleted")
	}
	return says, nil
}

// delete deletes what is left of the plan, and says what became of each server.
func (c *cleaning) delete(ctx context.Context, plan *clean.Plan, says clean.Consent, progress *progress) []clean.Deletion {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("not done within --timeout=%s", c.timeout))
	defer cancel()
	all := []clean.Deletion{}
	done := func() {
		c.showProgress(progress, fmt.Sprintf("deleting: %d of %d done", len(all), len(plan.Orphans)))
	}
	done()
	plan.Delete(ctx, says, c.wait, func(deletion clean.Deletion) {
		progress.show("")
		c.report(deletion)
		all = append(all, deletion)
		done()
	})
	progress.show("")
	return all
}

// verdictOf is the end of the command: all that should be deleted is gone, is not, or may be.
func (c *cleaning) verdictOf(result cleaned) error {
	code := report.ExitFine
	for _, deletion := range result.Deletions {
		switch deletion.Outcome {
		case clean.NotDeleted:
			return exitWith(report.ExitWrong)
		case clean.Unknown:
			code = report.ExitUnknown
		case clean.Gone, clean.Requested:
		}
	}
	if slices.ContainsFunc(result.Kept, func(kept clean.Kept) bool { return kept.Withheld || slices.Contains(c.clean.ServerIDs, kept.ID) }) {
		return exitWith(report.ExitWrong)
	}
	return exitWith(code)
}

// confirm asks whether to delete, unless --yes says so. Where only the user can know that this
// is the right cluster, they must type its name and the number of servers. What has changed
// while they thought about it ends the command.
func (c *cleaning) confirm(ctx context.Context, plan *clean.Plan, says clean.Consent) error {
	if c.yes {
		return nil
	}
	want, what := "yes", "yes"
	if plan.Needs() != clean.Flag {
		want = fmt.Sprintf("%s %d", c.clean.ClusterValue, plan.Count())
		what = "the cluster's name and their number, " + want + ","
	}
	number := fmt.Sprint(plan.Count())
	if going := len(plan.Orphans) - plan.Count(); going > 0 {
		number += fmt.Sprintf(", and %d to ask again that are being deleted", going)
	}
	_, _ = fmt.Fprintf(c.streams.ErrOut, "Servers to delete: %s. Type %s to delete them: ", number, what)
	if answer := c.readLine(ctx); answer != want {
		c.say("Nothing was deleted.")
		return exitWith(report.ExitWrong)
	}
	return plan.Recheck(ctx, says)
}

// readLine returns a line of the standard input; "" if the command is interrupted.
func (c *cleaning) readLine(ctx context.Context) string {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(c.streams.In).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text
	case <-ctx.Done():
		return ""
	}
}
