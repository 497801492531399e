// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// version is the output of `git describe`; make sets it.
var version = "unknown"

// options of a run. The durations are options so that the self-test can be quick.
type options struct {
	settings settings
	// out receives what the run says.
	out io.Writer
	// limit is the longest that a run may take; its last third is reserved for deleting.
	limit time.Duration
	// settle is how long lists may lag. It is also the sidecar's --stackit-settle.
	settle time.Duration
	// poll is the interval of the suite's reads of the project.
	poll time.Duration
	// patience is the longest that one boot or deletion may take.
	patience time.Duration
	// last are the lines that are printed after the result: what is left.
	last []string
}

// errNothingMade means that the run has sent nothing but lists.
var errNothingMade = errors.New("nothing was made")

// say prints a line. It never fails: a run whose terminal was closed goes on to delete what it has made.
func (o *options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.out, format+"\n", args...)
}

func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not all was done after %s", limit))
}

func again(run string) string { return "make test-cloud-sweep RUN=" + run }

// run asks for confirmation, runs the specs, sweeps and reports. The error says why the run failed.
func (o *options) run(ctx context.Context) error {
	if err := stack.Check(); err != nil {
		return fmt.Errorf("%w: %w", errNothingMade, err)
	}
	client, err := api.New(o.settings.Account, o.settings.Endpoint)
	if err != nil {
		return fmt.Errorf("%w: %w", errNothingMade, err)
	}
	old, err := o.oldRuns(ctx, client)
	if err != nil {
		return fmt.Errorf("%w: %w", errNothingMade, err)
	}
	o.say("%s", o.plan(old))
	if !o.settings.confirmed(ctx, os.Stdin, o.out) {
		return fmt.Errorf("%w: the answer was not yes", errNothingMade)
	}
	report, err := os.Create(o.settings.report)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errNothingMade, envReport, err)
	}
	lines, err := os.Create(strings.TrimSuffix(o.settings.report, ".md") + ".jsonl")
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errNothingMade, envReport, err)
	}
	// Its name tells others its age, so it is given after the answer.
	name := api.NewRun(time.Now())
	exchanges := guard.NewExchanges(lines, api.NetworkName(name))
	o.say("Run %s begins. If it is killed: %s", name, again(name))
	// One deadline holds for all that follows, the sweeps included.
	started := time.Now()
	deadline, stop := withLimit(context.WithoutCancel(ctx), o.limit)
	defer stop()
	specs, stopSpecs := withLimit(ctx, o.limit*2/3)
	defer stopSpecs()
	sweeping, stopSweep := withLimit(specs, o.limit/10)
	defer stopSweep()
	if err := o.sweepOld(sweeping, client, old); err != nil {
		o.say("Older runs stay: %v", err)
	}
	s, err := newSuite(specs, o, name, exchanges)
	if err != nil {
		return err
	}
	defer s.proxy.Close()
	problem := errors.Join(s.runSpecs(ctx), s.end(deadline))
	return errors.Join(problem, s.write(report, started, problem), exchanges.Err(), report.Close(), lines.Close())
}

// end deletes what is left. A run whose specs passed fails if something is left. A signal ends it.
func (s *suite) end(deadline context.Context) error {
	sweeping, stop := untilSignal(deadline)
	defer stop()
	s.say("Deletes what there is. Ctrl-C ends it at once.")
	s.proxy.EndSpecs(sweeping) // Nothing is to come behind the sweep.
	s.cleaner.note(s.guard.Things()...)
	found, err := s.cleaner.finish(sweeping)
	if err == nil && len(found) > 0 && s.passed {
		err = fmt.Errorf("left at the end, and deleted now: %v", found)
	}
	return err
}

// where describes project, region and endpoint.
func (o *options) where() string {
	at := "at " + o.settings.Endpoint
	if o.settings.Endpoint != spi.DefaultEndpoint {
		at += fmt.Sprintf("\n  WHICH IS NOT %s: %s or %s is set",
			spi.DefaultEndpoint, spi.EnvIaaSEndpoint, spi.EnvAPIEndpoint)
	}
	return fmt.Sprintf("in project %s, region %s, %s", o.settings.ProjectID, o.settings.Region, at)
}

// plan is the text that the user confirms.
func (o *options) plan(old map[string][]api.Thing) string {
	minutes := guard.MaxServers * o.limit.Minutes()
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
		"A run makes, " + o.where() + ":",
		"  network  " + api.NetworkName("<run>") + ", for this run alone",
		fmt.Sprintf("  servers  about 10, at most %d, of type %s, each with a volume of %d GB",
			guard.MaxServers, o.settings.machineType, bootVolumeSize),
		fmt.Sprintf("  time     7 to 10 minutes as a rule, at most %s with deleting", o.limit),
		fmt.Sprintf("  cost     10 to 20 server minutes as a rule; at most %.0f, and %.0f GB hours",
			minutes, minutes/60*bootVolumeSize),
		"  deletes  all of that at its end; " + leftovers,
	}, "\n")
}

func (s *suite) write(report io.Writer, started time.Time, problem error) error {
	s.proxy.Close()
	result := "Green."
	if problem != nil {
		result = "RED: " + problem.Error()
	}
	servers := slices.DeleteFunc(s.guard.Things(), func(t api.Thing) bool { return t.Kind != api.KindServer })
	used := fmt.Sprintf("It took %s and made %d servers.", time.Since(started).Round(time.Second), len(servers))
	s.say("%s The report is in %s, with all exchanges beside it.", used, s.settings.report)
	return guard.Report{
		Run: s.name, Version: version, Endpoint: s.settings.Endpoint, Region: s.settings.Region,
		MachineType: s.settings.machineType, Result: result, Used: used, Rows: s.guard.Rows(),
	}.Write(report)
}
