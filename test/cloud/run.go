// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// Options of a run. The durations are options so that the self-test can be quick.
type Options struct {
	Settings settings.Settings
	// Limit is the longest that a run may take; its last third is reserved for deleting.
	Limit time.Duration
	// Settle is how long lists may lag. It is also the sidecar's --stackit-settle.
	Settle time.Duration
	// Poll is the interval of the suite's reads of the project.
	Poll time.Duration
	// Patience is the longest that one boot or deletion may take.
	Patience time.Duration
	// In is the terminal; Out receives the run's output and hides secrets.
	In  *os.File
	Out io.Writer
}

// ErrNothingMade means that the run has sent nothing but lists.
var ErrNothingMade = errors.New("nothing was made")

// ErrSignal means that a signal has ended the run or the sweep.
var ErrSignal = errors.New("ended by a signal")

// Signals end a run: after the first it deletes what it has created, after the second it ends at once.
// The first one ends a sweep.
type Signals struct{ First, Second context.Context }

// sweepContext returns the context of a sweep that begins now.
func (s Signals) sweepContext() context.Context {
	if s.First.Err() != nil {
		return s.Second
	}
	return s.First
}

func (o Options) say(format string, args ...any) { _, _ = fmt.Fprintf(o.Out, format+"\n", args...) }

func (o Options) sweepOptions(client *api.Client) sweep.Options {
	return sweep.Options{API: client, Out: o.Out, Settle: o.Settle, Poll: o.Poll}
}

// Sweep deletes what is left of runs older than an hour, and of the run that the settings name.
func Sweep(signals Signals, o Options) error {
	client, err := api.New(o.Settings, o.Settings.Endpoint)
	if err != nil {
		return err
	}
	ctx, cancel := withLimit(signals.First, o.Limit)
	defer cancel()
	o.say("Sweeps %s.", o.where())
	var problems []error
	if run := o.Settings.SweepRun; run != "" {
		found, err := sweep.New(o.sweepOptions(client), run).Delete(ctx)
		if len(found) == 0 && err == nil {
			o.say("sweep: no servers of run %s were found: make sure that this is its project and region", run)
		}
		problems = append(problems, err)
	}
	return errors.Join(append(problems, o.sweepOld(ctx, client))...)
}

func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not all was done after %s", limit))
}

// oldRuns returns what is left of runs that are over.
func oldRuns(ctx context.Context, client *api.Client) (map[string][]mark.Thing, error) {
	runs, err := sweep.Runs(ctx, client)
	maps.DeleteFunc(runs, func(run string, _ []mark.Thing) bool { return !mark.IsOld(run, time.Now()) })
	return runs, err
}

func (o Options) sweepOld(ctx context.Context, client *api.Client) error {
	old, err := oldRuns(ctx, client)
	problems := []error{err}
	for run := range old {
		_, err := sweep.New(o.sweepOptions(client), run).Delete(ctx)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Run asks for confirmation, runs the specs, sweeps and reports. The error says why the run failed.
func Run(signals Signals, o Options) error {
	ctx, run := signals.First, mark.NewRun(time.Now())
	if err := stack.Check(); err != nil {
		return errors.Join(ErrNothingMade, err)
	}
	client, err := api.New(o.Settings, o.Settings.Endpoint)
	if err != nil {
		return errors.Join(ErrNothingMade, err)
	}
	old, err := oldRuns(ctx, client)
	if err != nil {
		return errors.Join(ErrNothingMade, err)
	}
	o.say("%s", o.plan(run, old))
	if !o.Settings.Confirmed(ctx, o.In, o.Out) {
		return fmt.Errorf("%w: the answer was not yes", ErrNothingMade)
	}
	reports, err := createReports(o.Settings.Report, mark.Network(run))
	if err != nil {
		return errors.Join(ErrNothingMade, err)
	}
	// One deadline holds for all that follows, the sweeps included.
	started := time.Now()
	deadline, stop := withLimit(signals.Second, o.Limit)
	defer stop()
	specs, stopSpecs := withLimit(signals.First, o.Limit*2/3)
	defer stopSpecs()
	if err := o.sweepOld(specs, client); err != nil {
		o.say("Older runs stay: %v", err)
	}
	s, err := newSuite(specs, o, run, reports.exchanges)
	if err != nil {
		return err
	}
	defer s.proxy.Close()
	problem := s.run()
	problem = errors.Join(problem, s.end(deadline, signals))
	return errors.Join(problem, reports.write(s, started, problem))
}

// end deletes what is left. A run whose specs passed fails if something is left.
func (s *suite) end(deadline context.Context, signals Signals) error {
	sweeping, stop := context.WithCancelCause(deadline)
	defer stop(nil)
	ending := signals.sweepContext()
	defer context.AfterFunc(ending, func() { stop(context.Cause(ending)) })()
	if signals.First.Err() != nil {
		s.say("Deletes what there is. Ctrl-C again ends it at once.")
	}
	s.proxy.EndSpecs(sweeping) // No server is to come behind the sweep.
	s.sweep.Note(s.guard.Things())
	found, err := s.sweep.Delete(sweeping)
	for _, name := range s.guard.Unanswered() {
		s.say("The API has never said whether it made server %s. If it shows later: %s", name, again(s.name))
	}
	if err == nil && len(found) > 0 && s.passed {
		err = fmt.Errorf("left at the end, and deleted now: %v", found)
	}
	return err
}

func again(run string) string { return "make test-cloud-sweep RUN=" + run }

// where describes project, region and endpoint.
func (o Options) where() string {
	project := o.Settings.ProjectID
	at := "at " + o.Settings.Endpoint
	if o.Settings.Endpoint != spi.DefaultEndpoint {
		at += fmt.Sprintf("\n  WHICH IS NOT %s: %s or %s is set",
			spi.DefaultEndpoint, spi.EnvIaaSEndpoint, spi.EnvAPIEndpoint)
	}
	return fmt.Sprintf("in the project that ends in %s, region %s, %s",
		project[max(0, len(project)-4):], o.Settings.Region, at)
}

// plan is the text that the user confirms.
func (o Options) plan(run string, old map[string][]mark.Thing) string {
	minutes := guard.AtOnce * o.Limit.Minutes()
	leftovers := "nothing is there of older runs"
	if len(old) > 0 {
		leftovers = "first, what older runs have left and what belongs to it:"
		for _, run := range slices.Sorted(maps.Keys(old)) {
			for _, thing := range old[run] {
				leftovers += "\n           " + thing.String()
			}
		}
	}
	return strings.Join([]string{
		"Run " + run + " makes, " + o.where() + ":",
		"  network  " + mark.Network(run) + ", for this run alone",
		fmt.Sprintf("  servers  about 12, at most %d at a time and %d in all, of type %s, each with a volume of %d GB",
			guard.AtOnce, guard.InAll, o.Settings.MachineType, bootVolumeSize),
		fmt.Sprintf("  time     7 to 10 minutes as a rule, at most %s with deleting", o.Limit),
		fmt.Sprintf("  cost     at most %.0f server minutes and %.0f GB hours; as a rule a tenth of that",
			minutes, minutes/60*bootVolumeSize),
		"  deletes  all of that at its end; " + leftovers,
		"If it is killed: " + again(run),
	}, "\n")
}

// reports are the files that a run writes.
type reports struct {
	path      string
	report    *os.File
	lines     *os.File
	exchanges *report.Exchanges
}

func createReports(path, prefix string) (*reports, error) {
	r := &reports{path: path}
	var err error
	if r.report, err = os.Create(path); err != nil {
		return nil, fmt.Errorf("%s: %w", settings.EnvReport, err)
	}
	if r.lines, err = os.Create(r.linesPath()); err != nil {
		return nil, fmt.Errorf("%s: %w", settings.EnvReport, err)
	}
	r.exchanges = report.NewExchanges(r.lines, prefix)
	return r, nil
}

func (r *reports) linesPath() string { return strings.TrimSuffix(r.path, ".md") + ".jsonl" }

func (r *reports) write(s *suite, started time.Time, problem error) error {
	result := "Green."
	if problem != nil {
		result = "RED: " + problem.Error()
	}
	s.proxy.Close()
	cost := s.witness.Cost(time.Now(), bootVolumeSize)
	text := report.Report{
		Run: s.name, Version: version, Endpoint: s.Settings.Endpoint, Region: s.Settings.Region,
		MachineType: s.Settings.MachineType, Result: result,
		Cost:     fmt.Sprintf("It took %s. %s", time.Since(started).Round(time.Second), cost),
		Findings: s.witness.Findings(), Rows: append(s.measured(), s.witness.Rows()...),
	}
	s.say("%s", text.Cost)
	err := errors.Join(text.Write(r.report), r.report.Close(), r.exchanges.Err(), r.lines.Close())
	s.say("The report is in %s, all exchanges are in %s.", r.path, r.linesPath())
	return err
}

// version is the output of `git describe`; make sets it.
var version = "unknown"
