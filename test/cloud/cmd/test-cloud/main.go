// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command test-cloud runs the suite for a real project, or with the argument sweep deletes
// what runs of it have left.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
)

func main() {
	// A closed terminal, or the end of a program that reads the output, is no end without a sweep.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitGreen = iota
	exitRed
	// exitWrongInput says that nothing was asked of the API.
	exitWrongInput
)

func run(ctx context.Context, args []string, lookup func(string) (string, bool), in *os.File, out, errOut io.Writer) int {
	o := cloud.Options{In: in, Limits: guard.DefaultLimits}
	flags := pflag.NewFlagSet("test-cloud [sweep]", pflag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.DurationVar(&o.Limits.Duration, "limit", o.Limits.Duration, "most that the specs may take, up to "+cloud.MaxDuration.String())
	flags.IntVar(&o.Limits.AtOnce, "at-once", o.Limits.AtOnce, "most servers at a time")
	flags.IntVar(&o.Limits.InAll, "in-all", o.Limits.InAll, "most servers that may be made")
	flags.DurationVar(&o.Settle, "settle", 30*time.Second, "how long lists may lag; the sidecar's --stackit-settle, too")
	flags.DurationVar(&o.Poll, "poll", 2*time.Second, "how often the project is looked at")
	flags.DurationVar(&o.Patience, "patience", 12*time.Minute, "how long one boot, deletion or sweep may take")
	flags.StringVar(&o.Command, "mcm-stackit", "bin/mcm-stackit", "path of the operator's command")
	if err := flags.Parse(args); err != nil {
		return exitWrongInput
	}
	sweeps := flags.NArg() == 1 && flags.Arg(0) == "sweep"
	if flags.NArg() > 0 && !sweeps {
		_, _ = fmt.Fprintf(errOut, "unexpected argument %q, there is only: sweep\n", flags.Args())
		return exitWrongInput
	}
	var err error
	if o.Settings, err = settings.Read(lookup, !sweeps); err != nil {
		_, _ = fmt.Fprintf(errOut, "The environment lacks, or has wrongly:\n%v\n", err)
		return exitWrongInput
	}
	o.Out = report.Hide(out, o.Settings.ProjectID, o.Settings.Email)
	if !sweeps {
		if err := o.Check(); err != nil {
			_, _ = fmt.Fprintf(o.Out, "nothing was made: %v\n", err)
			return exitWrongInput
		}
	}
	if sweeps {
		err = cloud.Sweep(ctx, o)
	} else {
		err = cloud.Run(ctx, o)
	}
	switch {
	case err == nil:
		_, _ = fmt.Fprintln(o.Out, "Green.")
		return exitGreen
	case errors.Is(err, cloud.ErrDeclined):
		_, _ = fmt.Fprintln(o.Out, err)
		return exitWrongInput
	default:
		_, _ = fmt.Fprintf(o.Out, "RED: %v\n", err)
		return exitRed
	}
}
