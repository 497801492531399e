// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command cloud is the suite for a real project. `make test-cloud` runs it; the README beside this
// file lists what it needs, what it costs and how to read its report.
//
// It has two halves, which run at the same time in one network of the run's own:
//
//   - A life (life.go): machine-controller-manager and this project's sidecar, on a local control
//     plane, make three Machines, roll one and scale to zero. Then lists of servers, NICs and volumes
//     must show nothing of the run.
//   - Probes (probes.go): one function for each open question about the API. Each makes a few calls
//     through the SDK and prints one row. A probe cannot make the run red.
//
// A run asks before it spends (settings.go), deletes what is left at its end or after Ctrl-C
// (sweep.go), and writes a report and the exchanges with the API (report.go, exchanges.go). With the
// argument sweep the command only deletes what earlier runs have left.
//
// The halves are parts of a program rather than tests of the go command, so that servers are not made
// by accident. This package does not import the mock; its tests run the suite against it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	// A closed terminal or pipe must not end the run without a sweep.
	signal.Ignore(syscall.SIGPIPE)
	ctx, _ := untilSignal(context.Background())
	os.Exit(start(ctx, os.Args[1:]))
}

// untilSignal returns a context that ends with Ctrl-C and when the terminal is closed.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// Exit codes.
const (
	exitGreen = iota
	exitRed
	exitNothingMade
)

// errNothingMade means that the command has made nothing and deleted nothing.
var errNothingMade = errors.New("nothing was made")

// Values of --only.
const (
	onlyLife   = "life"
	onlyProbes = "probes"
)

func start(ctx context.Context, args []string) int {
	o := &options{out: os.Stdout}
	flags := pflag.NewFlagSet("test-cloud [sweep]", pflag.ContinueOnError)
	flags.DurationVar(&o.limit, "limit", 15*time.Minute, "maximum time of a run; the last third is for deleting")
	flags.DurationVar(&o.patience, "patience", 5*time.Minute, "maximum time of one step, such as the boot of a server")
	flags.DurationVar(&o.settle, "settle", 30*time.Second, "how long lists may lag; also the sidecar's --stackit-settle")
	flags.DurationVar(&o.poll, "poll", 5*time.Second, "poll interval")
	flags.DurationSliceVar(&o.idle, "idle", []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute},
		"how long the probe of idle connections leaves one unused")
	flags.StringVar(&o.only, "only", "", "run one half: life or probes")
	if err := flags.Parse(args); err != nil {
		return exitNothingMade
	}
	isSweep := flags.Arg(0) == "sweep"
	var err error
	o.settings, err = readSettings(os.LookupEnv, !isSweep)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: missing or wrong in the environment:\n%w", errNothingMade, err)
	case o.limit >= oldAfter:
		err = fmt.Errorf("%w: --limit must be less than %s: a sweep takes older runs for ended", errNothingMade, oldAfter)
	case o.only != "" && o.only != onlyLife && o.only != onlyProbes:
		err = fmt.Errorf("%w: --only must be %s or %s", errNothingMade, onlyLife, onlyProbes)
	case isSweep:
		err = o.sweepRuns(ctx)
	default:
		err = o.run(ctx)
	}
	return o.printResult(err)
}

// printResult prints the result and returns the exit code. The last lines name what is left and the
// command that deletes it.
func (o *options) printResult(err error) int {
	code := exitGreen
	switch {
	case errors.Is(err, errNothingMade):
		code = exitNothingMade
		o.say("%v", err)
	case err != nil:
		code = exitRed
		o.say("RED: %v", err)
	default:
		o.say("Green.")
	}
	for _, line := range o.last {
		o.say("%s", line)
	}
	return code
}
