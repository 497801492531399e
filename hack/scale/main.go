// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures how long a MachineDeployment takes to scale up, to roll and to
// scale down on a local environment with the limits that Gardener sets, and which calls of
// the IaaS API that takes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Failed:", err)
		os.Exit(1)
	}
}

// run measures, writes the result to bin/scale and prints it beside the floor.
func run(ctx context.Context, o options, out io.Writer) error {
	progress := func(line string) { _, _ = fmt.Fprintln(out, line) }
	root, err := localenv.Root()
	if err != nil {
		return err
	}
	file := func(driver string) string {
		return filepath.Join(root, "bin", "scale", fmt.Sprintf("%s-%d.json", driver, o.Machines))
	}
	r, err := measure(ctx, o, progress)
	if err != nil {
		return err
	}
	if err := r.write(file(o.Driver)); err != nil {
		return err
	}
	var floor *result
	if o.Driver != driverInstant {
		if floor, err = readFloor(file(driverInstant), r.Conditions); err != nil {
			progress(fmt.Sprintf("no floor to compare with (make scale DRIVER=instant N=%d): %v", o.Machines, err))
		}
	}
	_, err = fmt.Fprintf(out, "\n%s\nWritten: %s\n", r.table(floor), file(o.Driver))
	return err
}
