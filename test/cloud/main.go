// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command cloud is the suite for a real project: it runs the driver on a local control plane against the
// real API, guards what is created, measures the API, and sweeps. `make test-cloud` runs it; the README
// beside this file says what it needs, what it costs and how to read its report. With the argument sweep
// it deletes what earlier runs have left.
//
// The specs are part of the program and not tests of the go command, so that they run only for somebody
// who wants servers. Nothing here knows the mock; the tests beside it run the suite against it.
//
// Each run creates a network of its own. All requests pass one proxy (package guard), which counts
// servers, notes what the run has created, and measures every answer. The sweep deletes what is in
// the network and has the run's name, or is noted. Package api is the client.
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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
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
	// exitNothingMade means that the run sent nothing but lists.
	exitNothingMade
)

func start(ctx context.Context, args []string) int {
	o := &options{out: os.Stdout}
	flags := pflag.NewFlagSet("test-cloud [sweep]", pflag.ContinueOnError)
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "most that a run may take; a third of it is kept for deleting")
	flags.DurationVar(&o.settle, "settle", 30*time.Second, "how long lists may lag; the sidecar's --stackit-settle, too")
	flags.DurationVar(&o.poll, "poll", 2*time.Second, "how often the project is looked at")
	flags.DurationVar(&o.patience, "patience", 10*time.Minute, "most that one boot or deletion may take")
	if err := flags.Parse(args); err != nil {
		return exitNothingMade
	}
	sweeps := flags.Arg(0) == "sweep"
	var err error
	o.settings, err = readSettings(os.LookupEnv, !sweeps)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: the environment lacks, or has wrongly:\n%w", errNothingMade, err)
	case o.limit >= api.OldAfter:
		err = fmt.Errorf("%w: --limit must be less than %s: other runs delete what is older", errNothingMade, api.OldAfter)
	case sweeps:
		err = o.sweepAll(ctx)
	default:
		err = o.run(ctx)
	}
	return o.tell(err)
}

// tell prints the result. The last lines are the IDs of what is left and the command that deletes it.
func (o *options) tell(err error) int {
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
