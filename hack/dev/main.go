// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command dev runs everything from MachineDeployment to Node on this computer, against a mock
// of the cloud.
//
//	go run ./hack/dev dev     starts it, applies samples/ and stays until Ctrl-C
//	go run ./hack/dev demo    runs the tour and exits: up, scale, roll, down
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
)

const usage = `Usage:
  go run ./hack/dev dev  [--boot 5s] [--delete 3s] [--sidecar own]
                                                     start, apply samples/, stay until Ctrl-C
  go run ./hack/dev demo [--boot 2s] [--delete 1s]   up to 3 machines, to 5, to another class, down to 0

--boot is the time until a server is ACTIVE, --delete the time until it is gone.
--sidecar none does not start the sidecar: run make start.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 done, 1 failed, 2 called wrongly, 130 a demo
// that was interrupted.
func run(args []string, stdout *os.File, stderr io.Writer) int {
	if len(args) == 0 {
		_, _ = fmt.Fprint(stderr, usage)
		return 2
	}
	command, choice := pick(args[0])
	if command == nil {
		_, _ = fmt.Fprint(stderr, usage)
		return 2
	}
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	flags.Usage = func() { _, _ = fmt.Fprint(stderr, usage) }
	flags.DurationVar(&choice.boot, "boot", choice.boot, "")
	flags.DurationVar(&choice.remove, "delete", choice.remove, "")
	if args[0] == "dev" {
		flags.StringVar(&choice.sidecar, "sidecar", choice.sidecar, "")
	}
	if err := flags.Parse(args[1:]); errors.Is(err, pflag.ErrHelp) {
		return 0
	} else if err != nil {
		_, _ = fmt.Fprintf(stderr, "%v\n%s", err, usage)
		return 2
	}
	if choice.sidecar != ownSidecar && choice.sidecar != noSidecar {
		_, _ = fmt.Fprintf(stderr, "--sidecar is %q, must be %s or %s\n", choice.sidecar, ownSidecar, noSidecar)
		return 2
	}
	ctx, end := untilInterrupted()
	defer end(nil)
	// A reader that has gone (make demo | head) is to end us as Ctrl-C does, not
	// where we stand: the signal would leave folders behind.
	signal.Ignore(syscall.SIGPIPE)
	err := command(ctx, newView(stdout, end), choice)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintln(stderr, "Interrupted.")
		return 130
	default:
		_, _ = fmt.Fprintf(stderr, "\nFailed: %v\n", err)
		return 1
	}
}

// pick returns the command of this name with its defaults, nil if there is none.
func pick(name string) (func(context.Context, *view, choice) error, choice) {
	switch name {
	case "dev":
		return dev, choice{boot: 5 * time.Second, remove: 3 * time.Second, sidecar: ownSidecar}
	case "demo":
		return demo, choice{boot: 2 * time.Second, remove: time.Second, sidecar: ownSidecar}
	default:
		return nil, choice{}
	}
}

// untilInterrupted returns a context that ends with errInterrupted on a signal,
// or when our parent is gone: "go run" and make do not pass SIGTERM on, and
// nobody would be left to stop us.
func untilInterrupted() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	// Further signals change nothing: stopping takes seconds, not for ever.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-signals:
				cancel(errInterrupted)
				return
			case <-ticker.C:
				if os.Getppid() != parent {
					cancel(errInterrupted)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
