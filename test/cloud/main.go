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
// A run asks for confirmation before it creates anything (settings.go), deletes what is left at its end or after Ctrl-C
// (sweep.go), and writes a report and the exchanges with the API (report.go, exchanges.go). With the
// argument sweep the command only deletes what earlier runs have left.
//
// The halves are parts of a program rather than tests of the go command, so that nobody creates servers
// by accident. Only the tests of this package use the mock: they run the suite against it.
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
	flags.DurationVar(&o.limit, "limit", 15*time.Minute,
		"maximum time of a run, less than 1h; its last third is reserved for deleting")
	flags.DurationVar(&o.patience, "patience", 5*time.Minute, "maximum time of one step, such as the boot of a server")
	flags.DurationVar(&o.settle, "settle", 30*time.Second,
		"maximum lag of lists after a change; also sets the sidecar's --stackit-settle")
	flags.DurationVar(&o.poll, "poll", 5*time.Second, "time between two reads while the run waits for a change")
	flags.DurationSliceVar(&o.idle, "idle", []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute},
		"times for which the probe of idle connections leaves a connection unused before it uses it again")
	flags.StringVar(&o.only, "only", "", "run one half alone: life or probes; empty runs both")
	if err := flags.Parse(args); err != nil {
		return exitNothingMade
	}
	isSweep := flags.Arg(0) == "sweep"
	var err error
	o.settings, err = readSettings(os.LookupEnv, !isSweep)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: environment variables are missing or wrong:\n%w", errNothingMade, err)
	case o.limit >= oldAfter:
		err = fmt.Errorf("%w: --limit is too long: must be less than %s, the age from which a sweep considers a run ended",
			errNothingMade, oldAfter)
	case o.only != "" && o.only != onlyLife && o.only != onlyProbes:
		err = fmt.Errorf("%w: the value of --only is unknown: must be %s or %s, or empty for both halves",
			errNothingMade, onlyLife, onlyProbes)
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
