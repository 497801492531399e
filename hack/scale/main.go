// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures a MachineDeployment of many machines on the local
// environment: from 0 up, a roll to another class, and down to 0 again. It prints
// what that took in time, API calls, CPU and memory, and writes the figures as
// JSON and a plot as SVG.
//
//	go run ./hack/scale --machines 500
//	go run ./hack/scale --machines 500 --driver instant    the floor to compare with
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// run measures, prints the figures to out and writes the files.
func run(ctx context.Context, o options, out io.Writer) error {
	folder, err := o.folder()
	if err != nil {
		return err
	}
	progress := func(line string) { _, _ = fmt.Fprintln(out, line) }
	r, err := measure(ctx, o, progress)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, o.name())
	if err := r.write(path + ".json"); err != nil {
		return err
	}
	floor, err := o.readFloor(r, folder, progress)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".svg", []byte(plot(r, floor)), 0o600); err != nil {
		return err
	}
	return errors.Join(report(out, r, floor), say(out, "\nWritten: %s.json and .svg\n", path))
}

func say(out io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(out, format, args...)
	return err
}

// folder is where the files go: below the repository's ignored folder unless
// somebody wants them elsewhere.
func (o options) folder() (string, error) {
	if o.out != "" {
		return o.out, nil
	}
	root, err := localenv.Root()
	return filepath.Join(root, "bin", "scale"), err
}

// name is the base of the names of this run's files.
func (o options) name() string {
	name := fmt.Sprintf("%s-%d", o.driver, o.machines)
	if o.driver != driverInstant && o.faults == 0 {
		name += "-no-faults"
	}
	return name
}

// readFloor reads the floor to compare with: the one asked for, or an earlier run
// with the instant driver if there is one that fits.
func (o options) readFloor(r *result, folder string, progress func(string)) (*result, error) {
	path, wanted := o.floor, o.floor != ""
	if !wanted {
		if o.driver == driverInstant {
			return nil, nil
		}
		path = filepath.Join(folder, fmt.Sprintf("%s-%d.json", driverInstant, o.machines))
	}
	floor, err := readResult(path)
	if err == nil {
		err = r.checkFloor(floor)
	}
	switch {
	case err == nil:
		return floor, nil
	case wanted:
		return nil, fmt.Errorf("floor %s: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		progress(fmt.Sprintf("no floor to compare with: make scale DRIVER=instant N=%d", o.machines))
	default:
		progress(fmt.Sprintf("floor %s left out: %v", path, err))
	}
	return nil, nil
}
