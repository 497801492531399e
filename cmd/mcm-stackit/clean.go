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
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// defaultOlderThan is the age from which clean takes a server for an orphan: by then the
// manager's own collector has seen it, if it runs.
const defaultOlderThan = 10 * time.Minute

// mostRemedies is how many kubectl lines clean shows for servers that stay.
const mostRemedies = 10

// cleaning is one run of clean.
type cleaning struct {
	*options
	clean  clean.Options
	dryRun bool
	yes    bool
	output format
}

func (o *options) newCleanCommand() *cobra.Command {
	c := &cleaning{options: o}
	var cluster string
	command := &cobra.Command{
		Use:   "clean --cluster KEY=VALUE [SERVER-ID...]",
		Short: "Delete a cluster's servers that no Machine names",
		Long: `Deletes orphans: servers that carry the given cluster label and the manager's labels, and
that no Machine names. It shows them, asks, deletes them as the driver does, and waits until
they are gone. Server IDs narrow it down to these.

It needs the cluster with the Machines, and refuses unless a MachineClass there carries the
same label in the same project: else it may be the wrong cluster. Where all classes are
deleted already, name the credentials. Where a server's class is not there, the cluster's
name must be typed on a terminal.

Exit codes: 0 nothing is left to delete, or --dry-run; 1 a server could not be deleted, is
left alone although it was named, or the answer was no; 2 it could not be told what is an
orphan; 64 wrong usage.`,
		Example: `  # What would be deleted
  mcm-stackit clean --cluster kubernetes.io/cluster=shoot--demo--laptop --dry-run

  # Delete what is older than an hour, without asking
  mcm-stackit clean --cluster kubernetes.io/cluster=shoot--demo--laptop --older-than 1h --yes`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := c.readArguments(cluster, args); err != nil {
				return err
			}
			return c.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&cluster, "cluster", "", "label of the cluster, as key=value; the key ends in /cluster. Required")
	flags.DurationVar(&c.clean.OlderThan, "older-than", defaultOlderThan, "least age of a server that is deleted")
	flags.StringSliceVar(&c.clean.Namespaces, "namespaces", nil,
		"namespaces whose MachineClasses and Machines are read where you may not read those of all; the cluster's name must be typed then")
	flags.BoolVar(&c.dryRun, "dry-run", false, "show what would be deleted, and end")
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	c.output.addTo(command, formatJSON, formatYAML)
	return command
}

func (c *cleaning) readArguments(cluster string, servers []string) error {
	key, value, err := account.ParseClusterLabel(cluster)
	if err != nil {
		return wrongUsage("--cluster: %v", err)
	}
	if c.clean.OlderThan < 0 {
		return wrongUsage("--older-than must not be negative")
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
	progress := c.progress()
	progress.show("reading servers and Machines")
	plan, err := clean.Make(ctx, o, c.clean)
	progress.show("")
	if err != nil {
		return err
	}
	c.show(plan)
	result := cleaned{Plan: plan, Deletions: []clean.Deletion{}}
	if len(plan.Orphans) > 0 && !c.dryRun {
		if err := c.confirm(ctx, plan); err != nil {
			_, failed := c.printAs(c.output, result)
			return errors.Join(err, failed)
		}
		done := func() {
			progress.show(fmt.Sprintf("deleting: %d of %d done", len(result.Deletions), len(plan.Orphans)))
		}
		done()
		plan.Delete(ctx, func(deletion clean.Deletion) {
			progress.show("")
			c.report(deletion)
			result.Deletions = append(result.Deletions, deletion)
			done()
		})
		progress.show("")
	}
	if _, err := c.printAs(c.output, result); err != nil {
		return err
	}
	return c.verdictOf(result)
}

// verdictOf is the end of the command: all that could be deleted is gone, or not.
func (c *cleaning) verdictOf(result cleaned) error {
	named := slices.ContainsFunc(result.Kept, func(kept clean.Kept) bool { return slices.Contains(c.clean.ServerIDs, kept.ID) })
	failed := slices.ContainsFunc(result.Deletions, func(deletion clean.Deletion) bool { return !deletion.Gone })
	if named || failed {
		return exitWith(finding.ExitWrong)
	}
	return nil
}

// show says what would be deleted, and what is left alone.
func (c *cleaning) show(plan *clean.Plan) {
	if len(plan.Orphans) > 0 {
		c.table(plan.Orphans)
		for _, doubt := range plan.Doubts {
			c.say("Mind: %s.", doubt)
		}
	}
	var owned []string
	for _, kept := range plan.Kept {
		switch {
		case len(c.clean.ServerIDs) > 0 && !slices.Contains(c.clean.ServerIDs, kept.ID):
		case len(c.clean.ServerIDs) == 0 && kept.Remedy != "":
			owned = append(owned, kept.Remedy)
		default:
			c.say("Server %s %s is left alone: %s.", kept.ID, kept.Name, kept.Reason)
			if kept.Remedy != "" {
				c.say("  To delete it with its Machine: %s", kept.Remedy)
			}
		}
	}
	if len(owned) > 0 {
		c.say("Servers that belong to Machines and stay: %d. To delete one with its Machine:", len(owned))
		for _, remedy := range owned[:min(len(owned), mostRemedies)] {
			c.say("  %s", remedy)
		}
		if len(owned) > mostRemedies {
			c.say("  and so on: -o json has all")
		}
	}
	if len(plan.Orphans) == 0 {
		c.say("There is nothing to delete.")
	}
}

// table shows the orphans: beside the data, if that is JSON or YAML.
func (c *cleaning) table(orphans []clean.Orphan) {
	out := c.streams.Out
	if c.output.value != "" {
		out = c.streams.ErrOut
	}
	t := &table{columns: []column{
		{name: "CLASS"}, {name: "MACHINE"}, {name: "SERVER"}, {name: "STATE"}, {name: "AGE"}, {name: "PROJECT"}, {name: "REGION"},
	}}
	for _, orphan := range orphans {
		t.addRow(orphan.ID, orphan.Class, orphan.Machine, orphan.ID, orphan.State,
			duration.HumanDuration(c.clock.Since(orphan.CreatedAt)), orphan.ProjectID, orphan.Region)
	}
	_ = t.print(out, false)
}

// confirm asks whether to delete. Where only the user can know that this is the right
// cluster, they must type its name: --yes is not enough.
func (c *cleaning) confirm(ctx context.Context, plan *clean.Plan) error {
	question, want := fmt.Sprintf("Servers to delete: %d. Type yes to delete them: ", len(plan.Orphans)), "yes"
	switch {
	case len(plan.Doubts) > 0:
		question, want = fmt.Sprintf("Servers to delete: %d. Type the cluster's name, %s, to delete them: ", len(plan.Orphans), c.clean.ClusterValue), c.clean.ClusterValue
		if !isTerminal(c.streams.In) {
			return wrongUsage("the cluster's name must be typed on a terminal, and standard input is none; --yes is not enough here")
		}
	case c.yes:
		return nil
	case !isTerminal(c.streams.In):
		return wrongUsage("standard input is no terminal: --yes deletes without asking, --dry-run shows what would be deleted")
	}
	_, _ = fmt.Fprint(c.streams.ErrOut, question)
	if answer := c.readLine(ctx); answer != want {
		c.say("Nothing was deleted.")
		return exitWith(finding.ExitWrong)
	}
	return nil
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

// report says what became of a server: beside the data, if that is JSON or YAML.
func (c *cleaning) report(deletion clean.Deletion) {
	name := fmt.Sprintf("server %s (%s)", deletion.Orphan.ID, deletion.Orphan.Name)
	switch {
	case !deletion.Gone:
		c.say("%s is not deleted: %s", name, deletion.Reason)
	case c.output.value == "":
		_, _ = fmt.Fprintln(c.streams.Out, name+" deleted")
	default:
		c.say("%s deleted", name)
	}
}
