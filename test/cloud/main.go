// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command cloud is the suite for a real project: it runs the driver on a local control plane against the
// real API, guards what is created, measures the API, and sweeps. `make test-cloud` runs it; the README
// beside this file says what it needs, what it costs and how to read its report. With the argument sweep
// it deletes what earlier runs have left.
//
// The specs are part of the program and not tests of the go command, so that they run only for somebody
// who wants servers. Nothing here knows the mock; package selftest runs the suite against it.
//
// Each run creates a network of its own. All requests pass one proxy (package guard), which counts
// servers, notes what the run has created, and measures every answer. Package sweep deletes what is in
// the network and has the run's name, or is noted. Package api is the client.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

func main() {
	// A closed terminal or pipe must not end the run without a sweep.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(start(handleSignals(), os.Args[1:]))
}

// handleSignals returns two contexts: one ends with the first signal, the other with the second.
func handleSignals() signals {
	first, endFirst := context.WithCancelCause(context.Background())
	second, endSecond := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		endFirst(fmt.Errorf("%w: %s", errSignal, <-received))
		endSecond(fmt.Errorf("%w: %s, the second one", errSignal, <-received))
	}()
	return signals{first: first, second: second}
}

// Exit codes.
const (
	exitGreen = iota
	exitRed
	// exitNothingMade means that the run sent nothing but lists.
	exitNothingMade
)

const maxLimit = 50 * time.Minute

func start(signals signals, args []string) int {
	o := &options{out: os.Stderr}
	flags := pflag.NewFlagSet("test-cloud [sweep]", pflag.ContinueOnError)
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "most that a run may take; a third of it is kept for deleting")
	flags.DurationVar(&o.settle, "settle", 30*time.Second, "how long lists may lag; the sidecar's --stackit-settle, too")
	flags.DurationVar(&o.poll, "poll", 2*time.Second, "how often the project is looked at")
	flags.DurationVar(&o.patience, "patience", 10*time.Minute, "most that one boot or deletion may take")
	if err := flags.Parse(args); err != nil {
		return exitNothingMade
	}
	sweeps := flags.NArg() == 1 && flags.Arg(0) == "sweep"
	if flags.NArg() > 0 && !sweeps {
		o.say("unexpected argument %q, there is only: sweep", flags.Args())
		return exitNothingMade
	}
	var err error
	if o.settings, err = readSettings(os.LookupEnv, !sweeps); err != nil {
		o.say("The environment lacks, or has wrongly:\n%v", err)
		return exitNothingMade
	}
	if o.limit > maxLimit {
		o.say("--limit is %s, must be at most %s: other runs delete what is older than %s", o.limit, maxLimit, api.OldAfter)
		return exitNothingMade
	}
	o.out = os.Stdout
	if sweeps {
		err = o.sweepAll(signals)
	} else {
		err = o.run(signals)
	}
	return o.tell(err)
}

// tell prints the result. The last lines are the IDs of what is left and the command that deletes it.
func (o *options) tell(err error) int {
	if errors.Is(err, errNothingMade) {
		o.say("%s", strings.ReplaceAll(err.Error(), "\n", ": "))
		return exitNothingMade
	}
	code := exitGreen
	if err != nil {
		code = exitRed
		o.say("RED: %v", err)
	} else {
		o.say("Green.")
	}
	for _, line := range o.last {
		o.say("%s", line)
	}
	return code
}
