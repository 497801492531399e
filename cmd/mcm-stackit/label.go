// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/label"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// labelling is one run of label.
type labelling struct {
	*options
	yes    bool
	output format
}

func (o *options) newLabelCommand() *cobra.Command {
	l := &labelling{options: o}
	command := &cobra.Command{
		Use:   "label",
		Short: "Label servers that Machines name and that came from OpenStack",
		Long: `Puts the labels by which the driver finds a server on the servers of the namespace's Machines
that lack them: the Machine's name, the class's, and the class's cluster label. It shows what is
missing, and changes it with --yes only.

A Machine must name its server by a ProviderID, exactly as the driver writes it:
stackit://<projectId>/<serverId>. With the labels and a ProviderID of another form the manager
would delete the server as an orphan. A server whose name, labels or metadata say that it is of
another Machine, class or cluster is left alone.

All labels that the server has are sent, but for those that only STACKIT may set, and the answer
is compared: after one that lacks a label, no other server is changed.

Exit codes: 0 every server has its labels, or would get them; 1 a server is left alone that lacks
labels, or an answer was wrong; 2 it could not be told; 64 wrong usage.`,
		Example: `  # What would be labelled
  mcm-stackit label -n shoot--demo--laptop

  # Label it
  mcm-stackit label -n shoot--demo--laptop --yes`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return l.run(command.Context()) },
	}
	command.Flags().BoolVarP(&l.yes, "yes", "y", false, "label the servers; without it, only show what would be done")
	l.output.addTo(command, formatJSON, formatYAML)
	return command
}

func (l *labelling) run(ctx context.Context) error {
	o, err := l.operator(ctx, true)
	if err != nil {
		return err
	}
	plan, err := l.plan(ctx, o)
	if err != nil {
		return err
	}
	for _, server := range plan.Servers {
		if !l.yes || server.Outcome != label.Missing {
			l.report(server)
		}
	}
	if l.yes {
		plan.Apply(ctx, l.report)
	}
	return l.end(plan)
}

// end says how it ended.
func (l *labelling) end(plan *label.Plan) error {
	l.sum(plan)
	if _, err := l.printAs(l.output, plan); err != nil {
		return err
	}
	return exitWith(labelExitCode(plan))
}

func (l *labelling) plan(ctx context.Context, o *account.Access) (*label.Plan, error) {
	progress := l.progress()
	progress.show("reading servers and Machines")
	defer progress.show("")
	return label.Make(ctx, o)
}

// report says what became, or would become, of a server: beside the data, if that is JSON or YAML.
func (l *labelling) report(server label.Server) {
	name := fmt.Sprintf("server %s (%s)", server.ID, server.Machine)
	if server.ID == "" {
		name = "the server of Machine " + server.Machine
	}
	switch server.Outcome {
	case label.Missing:
		l.line("%s would get %s", name, account.ClusterText(server.Labels))
	case label.Labelled:
		l.line("%s got %s", name, account.ClusterText(server.Labels))
	case label.Refused:
		l.say("%s is left alone: %s", name, server.Reason)
	case label.Wrong:
		l.say("%s: %s", name, server.Reason)
	case label.Unknown:
		l.say("%s may lack labels: %s", name, server.Reason)
	case label.Complete:
	}
}

// line is data, unless that is JSON or YAML.
func (l *labelling) line(format string, args ...any) {
	if l.output.value != "" {
		l.say(format, args...)
		return
	}
	_, _ = fmt.Fprintf(l.streams.Out, format+"\n", args...)
}

func (l *labelling) sum(plan *label.Plan) {
	count := map[label.Outcome]int{}
	for i := range plan.Servers {
		count[plan.Servers[i].Outcome]++
	}
	if complete := count[label.Complete]; complete > 0 {
		l.say("%s had all labels before.", report.Count(complete, "server"))
	}
	switch {
	case count[label.Missing] > 0:
		l.say("Nothing was changed: --yes does it.")
	case len(plan.Servers) == count[label.Complete]:
		l.say("There is nothing to label.")
	}
}

// labelExitCode says whether every server has its labels, or would get them.
func labelExitCode(plan *label.Plan) int {
	code := report.ExitFine
	for i := range plan.Servers {
		switch plan.Servers[i].Outcome {
		case label.Refused, label.Wrong:
			return report.ExitWrong
		case label.Unknown:
			code = report.ExitUnknown
		case label.Complete, label.Missing, label.Labelled:
		}
	}
	return code
}
