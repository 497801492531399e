// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command dev runs everything from MachineDeployment to Node on this computer, against a mock
// of the cloud. make dev and make demo run it.
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
)

const usage = `Usage:
  dev                   start, apply samples/, stay until Ctrl-C
  dev --sidecar=none    the same without the sidecar, which make start then runs
  demo                  scale to 3 machines and 5, roll to another class, scale to 0, end
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 for success, 1 for a failure, 2 for wrong usage, 130 for an interrupted demo. An
// interrupt is the normal end of dev.
func run(args []string, stdout *os.File, stderr io.Writer) int {
	commands := map[string]func(context.Context, *view) error{
		"dev":                func(ctx context.Context, v *view) error { return dev(ctx, v, ownSidecar) },
		"dev --sidecar=own":  func(ctx context.Context, v *view) error { return dev(ctx, v, ownSidecar) },
		"dev --sidecar=none": func(ctx context.Context, v *view) error { return dev(ctx, v, noSidecar) },
		"demo":               demo,
	}
	command := commands[strings.Join(args, " ")]
	if command == nil {
		_, _ = fmt.Fprint(stderr, usage)
		return 2
	}
	ctx, end := untilInterrupted()
	defer end(nil)
	// A closed output (make demo | head) ends the program as Ctrl-C does, and not at once: the signal would leave
	// folders behind.
	signal.Ignore(syscall.SIGPIPE)
	err := command(ctx, newView(stdout, end))
	// client-go reports that the context was cancelled, but not why.
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	switch {
	case err == nil, errors.Is(err, errInterrupted) && args[0] == "dev":
		return 0
	case errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintln(stderr, "Interrupted.")
		return 130
	default:
		_, _ = fmt.Fprintf(stderr, "\nFailed: %v\n", err)
		return 1
	}
}

// errInterrupted is the error of an interrupted command.
var errInterrupted = errors.New("interrupted")

// untilInterrupted returns a context that ends with errInterrupted on a signal, or when the parent process or the
// terminal is gone. make passes on SIGTERM only: it cannot pass on SIGKILL, and where it is the terminal's first
// program, it alone gets SIGHUP, and waits for us.
func untilInterrupted() (context.Context, context.CancelCauseFunc) {
	parent, onTerminal := os.Getppid(), hasTerminal()
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	// Further signals change nothing: stopping takes seconds.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for os.Getppid() == parent && hasTerminal() == onTerminal {
			select {
			case <-signals:
				cancel(errInterrupted)
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		cancel(errInterrupted)
	}()
	return ctx, cancel
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err == nil {
		_ = terminal.Close()
	}
	return err == nil
}
