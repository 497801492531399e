// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command test-cloud runs the suite for a real project. With the argument sweep it deletes what
// earlier runs have left.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/sweep"
)

func main() {
	// A closed terminal or pipe must not end the run without a sweep.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(signals(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// signals returns two contexts: one ends with the first signal, the other with the second.
func signals() cloud.Signals {
	first, endFirst := context.WithCancelCause(context.Background())
	second, endSecond := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		endFirst(fmt.Errorf("%w: %s", cloud.ErrSignal, <-received))
		endSecond(fmt.Errorf("%w: %s, the second one", cloud.ErrSignal, <-received))
	}()
	return cloud.Signals{First: first, Second: second}
}

// Exit codes.
const (
	exitGreen = iota
	exitRed
	// exitNothingMade means that the run sent nothing but lists.
	exitNothingMade
)

const maxLimit = 50 * time.Minute

func run(
	signals cloud.Signals, args []string, lookup func(string) (string, bool), in *os.File, out, errOut io.Writer,
) int {
	o := cloud.Options{In: in}
	flags := pflag.NewFlagSet("test-cloud [sweep]", pflag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.DurationVar(&o.Limit, "limit", 30*time.Minute, "most that a run may take; a third of it is kept for deleting")
	flags.DurationVar(&o.Settle, "settle", 30*time.Second, "how long lists may lag; the sidecar's --stackit-settle, too")
	flags.DurationVar(&o.Poll, "poll", 2*time.Second, "how often the project is looked at")
	flags.DurationVar(&o.Patience, "patience", 10*time.Minute, "most that one boot or deletion may take")
	if err := flags.Parse(args); err != nil {
		return exitNothingMade
	}
	sweeps := flags.NArg() == 1 && flags.Arg(0) == "sweep"
	if flags.NArg() > 0 && !sweeps {
		_, _ = fmt.Fprintf(errOut, "unexpected argument %q, there is only: sweep\n", flags.Args())
		return exitNothingMade
	}
	var err error
	if o.Settings, err = settings.Read(lookup, !sweeps); err != nil {
		_, _ = fmt.Fprintf(errOut, "The environment lacks, or has wrongly:\n%v\n", err)
		return exitNothingMade
	}
	if o.Limit > maxLimit {
		_, _ = fmt.Fprintf(errOut, "--limit is %s, must be at most %s: other runs delete what is older than %s\n",
			o.Limit, maxLimit, mark.OldAfter)
		return exitNothingMade
	}
	o.Out = report.Hide(out, o.Settings.ProjectID)
	if sweeps {
		err = cloud.Sweep(signals, o)
	} else {
		err = cloud.Run(signals, o)
	}
	return tell(o.Out, err)
}

// tell prints the result. The last lines are the IDs of what is left and the command that deletes it.
func tell(out io.Writer, err error) int {
	switch {
	case err == nil:
		_, _ = fmt.Fprintln(out, "Green.")
		return exitGreen
	case errors.Is(err, cloud.ErrNothingMade):
		_, _ = fmt.Fprintln(out, strings.ReplaceAll(err.Error(), "\n", ": "))
		return exitNothingMade
	}
	_, _ = fmt.Fprintf(out, "RED: %v\n", err)
	for _, left := range sweep.Left(err) {
		for _, thing := range left.Left {
			_, _ = fmt.Fprintf(out, "LEFT: %s\n", thing)
		}
		_, _ = fmt.Fprintf(out, "Try again: make test-cloud-sweep RUN=%s\n", left.Run)
	}
	return exitRed
}
