// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// version is the output of `git describe`; make sets it.
var version = "unknown"

// options of the command. The times are flags so that the tests can be quick.
type options struct {
	settings settings
	// out receives what the command prints.
	out io.Writer
	// limit is the maximum time of a run; its last third is for deleting.
	limit time.Duration
	// patience is the maximum time of one step, such as a boot.
	patience time.Duration
	// settle is how long lists may lag. It is also the sidecar's --stackit-settle.
	settle time.Duration
	poll   time.Duration
	// idle is how long the probe of idle connections leaves one unused, one time after the other.
	idle []time.Duration
	// only is the half to run; "" means both.
	only string
	// last are the lines that are printed after the result.
	last []string
}

// say prints a line. It never fails: a run whose terminal was closed goes on to delete what it has made.
func (o *options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.out, format+"\n", args...)
}

func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("the time limit of %s has passed", limit))
}

// again returns the command that deletes what a run has left.
func again(run string) string { return "make test-cloud-sweep RUN=" + run }

// await reads at once and at each poll interval until what is awaited is seen. The error has what was seen last.
func (o *options) await(
	ctx context.Context, patience time.Duration, read func(context.Context) (seen string, done bool),
) error {
	deadline := time.Now().Add(patience)
	for {
		seen, done := read(ctx)
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out after %s: %s", patience, seen)
		}
		if err := pause(ctx, o.poll); err != nil {
			return fmt.Errorf("%w: %s", err, seen)
		}
	}
}

// run is one run of the suite.
type run struct {
	*sweep

	report    *report
	exchanges *exchanges
	// network is the ID of the run's network.
	network string
}

// run asks for confirmation, runs both halves, sweeps and reports. The error is why the run is red.
func (o *options) run(ctx context.Context) error {
	if o.only != onlyProbes {
		if err := localenv.Check(); err != nil {
			return fmt.Errorf("%w: %w", errNothingMade, err)
		}
	}
	if _, err := newProject(o.settings, nil); err != nil { // before the question
		return fmt.Errorf("%w: %w", errNothingMade, err)
	}
	o.say("%s", o.plan())
	if !o.settings.confirmed(ctx, os.Stdin, o.out) {
		return fmt.Errorf("%w: the answer was not yes", errNothingMade)
	}
	reportFile, err := os.Create(o.settings.report)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errNothingMade, envReport, err)
	}
	lines, err := os.Create(strings.TrimSuffix(o.settings.report, ".md") + ".jsonl")
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errNothingMade, envReport, err)
	}
	// A sweep takes the run's age from its name, so it gets one after the answer.
	r, err := o.newRun(newRunName(time.Now()), lines)
	if err != nil {
		return fmt.Errorf("%w: %w", errNothingMade, err)
	}
	o.say("Run %s begins. If it is killed, this command deletes what it has left: %s", r.name, again(r.name))
	started := time.Now()
	problem := r.runAndSweep(ctx)
	took := time.Since(started).Round(time.Second)
	o.say("The run took %s. The report is %s; the .jsonl file beside it has the exchanges with the API.",
		took, reportFile.Name())
	return errors.Join(problem, r.writeReport(reportFile, took, problem),
		r.exchanges.failure(), reportFile.Close(), lines.Close())
}

func (o *options) newRun(name string, lines io.Writer) (*run, error) {
	r := &run{report: &report{}}
	r.exchanges = newExchanges(lines, func(item string) bool { return r.mentions(item) })
	p, err := newProject(o.settings, &recorder{r.exchanges, spi.NewTransport()})
	if err != nil {
		return nil, err
	}
	r.sweep = o.newSweep(p, name)
	return r, nil
}

// runAndSweep runs both halves until ctx ends (Ctrl-C) or their time is over, and deletes what is left. The
// run is red if the life fails, or if anything is left although it did not.
func (r *run) runAndSweep(ctx context.Context) error {
	deadline, stop := withLimit(context.WithoutCancel(ctx), r.limit)
	defer stop()
	working, stopWork := withLimit(ctx, r.limit*2/3)
	defer stopWork()
	problem := r.work(working)
	if problem == nil {
		problem = r.awaitNothing(working)
	}
	sweeping, stopSweep := untilSignal(deadline)
	defer stopSweep()
	r.say("Deleting the network and what is left of the run. Ctrl-C stops this at once.")
	deleted, err := r.finish(sweeping)
	if problem == nil && err == nil && len(deleted) > 0 {
		err = fmt.Errorf("resources were left at the end of the run, and have now been deleted: %s", texts(deleted))
	}
	if problem == nil && err == nil {
		r.note("Left at the end", "no server, NIC or volume of the run in the lists; the network could be deleted")
	}
	return errors.Join(problem, err)
}

// work makes the network and runs the halves beside each other.
func (r *run) work(ctx context.Context) error {
	if err := r.makeNetwork(ctx); err != nil {
		return fmt.Errorf("creating the network: %s", describe(err))
	}
	var probing sync.WaitGroup
	if r.only != onlyLife {
		probing.Go(func() { (&probes{run: r}).askAll(ctx) })
	}
	var problem error
	if r.only != onlyProbes {
		if problem = r.life(ctx); problem != nil {
			problem = fmt.Errorf("the life: %w", problem)
			r.say("%v", problem)
		}
	}
	probing.Wait()
	if problem == nil && ctx.Err() != nil {
		problem = context.Cause(ctx)
	}
	return problem
}

// makeNetwork makes the run's network. Without an answer the sweep looks for its name.
func (r *run) makeNetwork(ctx context.Context) error {
	ipv4 := iaas.CreateNetworkIPv4WithPrefixLengthAsCreateNetworkIPv4(iaas.NewCreateNetworkIPv4WithPrefixLength(24))
	payload := iaas.CreateNetworkPayload{Name: networkName(r.name), Ipv4: &ipv4}
	made, err := r.API.CreateNetwork(ctx, r.ProjectID, r.region).CreateNetworkPayload(payload).Execute()
	if err != nil {
		return err
	}
	if made.GetName() != payload.Name || made.GetId() == "" {
		return errors.New("the answer to the POST shows no ID, or a network with another name")
	}
	r.network = made.GetId()
	r.add(thing{kind: kindNetwork, id: r.network, name: payload.Name})
	return r.await(ctx, r.patience, func(ctx context.Context) (string, bool) {
		networks, err := r.networks(ctx)
		if err != nil {
			return describe(err), false
		}
		isMade := func(n iaas.Network) bool { return n.GetId() == r.network && n.GetStatus() != statusCreating }
		return "lists do not show the network, or show it as CREATING", slices.ContainsFunc(networks, isMade)
	})
}

// where describes project, region and endpoint.
func (o *options) where() string {
	at := "at " + o.settings.config.Endpoint
	if o.settings.config.Endpoint != spi.DefaultEndpoint {
		at += fmt.Sprintf("\n  WHICH IS NOT %s: %s or %s is set",
			spi.DefaultEndpoint, spi.EnvIaaSEndpoint, spi.EnvAPIEndpoint)
	}
	return fmt.Sprintf("in project %s, region %s, %s", o.settings.projectID, o.settings.region, at)
}

// plan is the text that the user confirms.
func (o *options) plan() string {
	return strings.Join([]string{
		"A run makes, " + o.where() + ":",
		"  network  " + networkName("<run>") + ", for this run alone",
		fmt.Sprintf("  servers  4 for some minutes and up to %d for a minute each, of type %s, each with a volume of %d GB",
			maxProbeServers, o.settings.machineType, bootVolumeSize),
		fmt.Sprintf("  time     10 minutes as a rule, at most %s with deleting", o.limit),
		"  cost     about half an hour of one such server and volume",
		"  deletes  all of that at its end, and nothing else",
	}, "\n")
}

func (r *run) writeReport(out io.Writer, took time.Duration, problem error) error {
	result := "Green."
	if problem != nil {
		result = "RED: " + problem.Error()
	}
	return r.report.write(out, fmt.Sprintf("# Run %s against %s\n\nRegion %s, machine type %s, version %s. It took %s.",
		r.name, r.settings.config.Endpoint, r.settings.region, r.settings.machineType, version, took), result)
}
