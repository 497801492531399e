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
func run(args []string, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout, start: time.Now()}
	var command func(context.Context) error
	switch strings.Join(args, " ") {
	case "dev":
		command = func(ctx context.Context) error { return dev(ctx, out, false) }
	case "dev --sidecar=none":
		command = func(ctx context.Context) error { return dev(ctx, out, true) }
	case "demo":
		command = func(ctx context.Context) error { return demo(ctx, out) }
	default:
		_, _ = fmt.Fprint(stderr, usage)
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go interrupt(ctx, cancel)
	err := command(ctx)
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

// interrupt cancels at a signal, and when make is gone, which cannot pass on its SIGKILL. Nothing else ends this
// process, not even a closed output (make demo | head): etcd and kube-apiserver would go on.
func interrupt(ctx context.Context, cancel context.CancelCauseFunc) {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	// Further signals change nothing: stopping takes seconds.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for parent := os.Getppid(); os.Getppid() == parent; {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			cancel(errInterrupted)
		case <-ticker.C:
		}
	}
	cancel(errInterrupted)
}

// output prints lines with the time since the start.
type output struct {
	io.Writer
	start time.Time
}

func (o *output) progress(line string) {
	_, _ = fmt.Fprintf(o, "[%5.1fs] %s\n", time.Since(o.start).Seconds(), line)
}
