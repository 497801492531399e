// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
)

// ErrDeclined says that nothing was made, since nobody has agreed.
var ErrDeclined = errors.New("nothing was made: the answer was not yes")

// Sweep deletes what old runs have left, and the run that the settings name.
func Sweep(ctx context.Context, o Options) error {
	client, err := api.New(o.Settings, o.Settings.Endpoint)
	if err != nil {
		return err
	}
	o.say("Sweeps %s.", o.where())
	sweeper := o.sweeper(client)
	var named int
	var problem error
	if run := o.Settings.SweepRun; run != "" {
		// First: what is old may not go.
		if named, problem = sweeper.Run(ctx, run); named == 0 && problem == nil {
			o.say("sweep: nothing of run %s was found: make sure that this is its project, region and network", run)
		}
	}
	old, err := sweeper.Old(ctx)
	o.say("sweep: %d things were deleted", named+old)
	return errors.Join(problem, err, o.showSimilar(ctx, sweeper))
}

func (o Options) showSimilar(ctx context.Context, sweeper sweep.Sweeper) error {
	similar, err := sweeper.Similar(ctx)
	for _, thing := range similar {
		o.say("sweep: leaves %s, which only looks like the suite's: it lacks a label or the name of a run", thing)
	}
	return err
}

// Run asks, sweeps, runs the specs, sweeps again and reports. The error says why it is red.
func Run(ctx context.Context, o Options) error {
	run := mark.NewRun(time.Now())
	client, err := api.New(o.Settings, o.Settings.Endpoint)
	if err != nil {
		return err
	}
	sweeper := o.sweeper(client)
	if err := refuseSecondRun(ctx, sweeper); err != nil {
		return err
	}
	o.say("%s", o.plan(run))
	if !o.Settings.Confirmed(ctx, o.In, o.Out) {
		return ErrDeclined
	}
	if _, err := sweeper.Old(ctx); err != nil {
		return err
	}
	s, err := newSuite(ctx, o, run)
	if err != nil {
		return err
	}
	defer s.door.Close()
	problem := s.run()
	s.door.Close() // What is killed must not make a server behind the sweep.

	// Also after Ctrl-C: what was made has to go.
	left, err := o.end(context.WithoutCancel(ctx), s, sweeper)
	if problem == nil && left > 0 {
		problem = fmt.Errorf("%d things of the run were left at its end, and are deleted now: see above", left)
	}
	problem = errors.Join(problem, err)
	return errors.Join(problem, s.report(problem))
}

// end deletes what is left, and says how many things that were. The sweeper does without the
// door, which is closed; it knows what the run has seen.
func (o Options) end(ctx context.Context, s *suite, sweeper sweep.Sweeper) (left int, err error) {
	s.knowServers()
	sweeper.Known = s.sweeper.Known
	left, err = sweeper.Run(ctx, s.name)
	_, old := sweeper.Old(ctx)
	for _, name := range s.guard.Unanswered() {
		o.say("The API has never said whether it made server %s. If it shows later: make test-cloud-sweep RUN=%s", name, s.name)
	}
	return left, errors.Join(err, old, o.showSimilar(ctx, sweeper))
}

func refuseSecondRun(ctx context.Context, sweeper sweep.Sweeper) error {
	others, err := sweeper.Others(ctx)
	if err != nil {
		return fmt.Errorf("looking for other runs in the project: %w", err)
	}
	for other, thing := range others {
		return fmt.Errorf("run %s is under way in this project, or was killed: it has %s. Wait for it, or: make test-cloud-sweep RUN=%s", other, thing, other)
	}
	return nil
}

func (o Options) plan(run string) string {
	return strings.Join([]string{
		"Run " + run + " makes, " + o.where() + ":",
		fmt.Sprintf("  servers      at most %d at a time and %d in all, of type %s, for at most %s: at most %.0f server minutes",
			o.Limits.AtOnce, o.Limits.InAll, o.Settings.MachineType, o.Limits.Duration, float64(o.Limits.AtOnce)*o.Limits.Duration.Minutes()),
		"  names        " + mark.Name(run, "…"),
		"  label        " + mark.ClusterLabel + "=" + mark.Cluster(run),
		"and deletes them. Before and after, it deletes what other runs have left more than an hour ago.",
		"If it is killed: make test-cloud-sweep RUN=" + run,
	}, "\n")
}

// report writes what was measured to the file of the settings, or else shows it.
func (s *suite) report(problem error) error {
	result := "Green."
	if problem != nil {
		result = "Red: " + problem.Error()
	}
	r := report.Report{
		Run: s.name, Endpoint: s.Settings.Endpoint, Region: s.Settings.Region, MachineType: s.Settings.MachineType, Result: result,
		Findings: s.witness.Findings(), Rows: append(s.witness.Rows(time.Now()), s.noted()...),
	}
	if s.Settings.Report == "" {
		return r.Write(s.Out)
	}
	file, err := os.Create(s.Settings.Report)
	if err != nil {
		return fmt.Errorf("%s: %w", settings.EnvReport, err)
	}
	if err := errors.Join(r.Write(file), file.Close()); err != nil {
		return fmt.Errorf("%s: %w", settings.EnvReport, err)
	}
	s.say("The report is in %s.", s.Settings.Report)
	return nil
}
