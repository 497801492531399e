// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command iaasmock serves a mocked STACKIT IaaS API until it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

type options struct {
	address                string
	boot, remove           time.Duration
	latencyMin, latencyMax time.Duration
	listLag                time.Duration
	noAuth                 bool
	keyFile                string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "iaasmock:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	cloud := iaasmock.New(o.cloudOptions()...)
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (choose another with --address): %w", o.address, err)
	}
	if o.keyFile != "" {
		if err := writeKey(cloud, o.keyFile); err != nil {
			_ = listener.Close()
			return err
		}
	}
	printIntro(out, "http://"+listener.Addr().String(), o)
	return serve(ctx, listener, cloud)
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("iaasmock", pflag.ContinueOnError)
	flags.StringVar(&o.address, "address", "127.0.0.1:8080", "address to listen on; port 0 takes a free one")
	flags.DurationVar(&o.boot, "boot", 10*time.Second, "time from CREATING to ACTIVE")
	flags.DurationVar(&o.remove, "delete", 5*time.Second, "time from DELETING to gone")
	flags.DurationVar(&o.latencyMin, "latency-min", 0, "least time an API call takes")
	flags.DurationVar(&o.latencyMax, "latency-max", 0, "most time an API call takes; default: --latency-min")
	flags.DurationVar(&o.listLag, "list-lag", 0, "how long lists of servers lag behind")
	flags.BoolVar(&o.noAuth, "no-auth", false, "accept calls without a token")
	flags.StringVar(&o.keyFile, "key-file", "", "write a service account key of the default project to this file")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for name, d := range map[string]time.Duration{
		"boot": o.boot, "delete": o.remove, "latency-min": o.latencyMin, "latency-max": o.latencyMax, "list-lag": o.listLag,
	} {
		if d < 0 {
			return o, fmt.Errorf("--%s must not be negative", name)
		}
	}
	if !flags.Changed("latency-max") {
		o.latencyMax = o.latencyMin
	}
	if o.latencyMax < o.latencyMin {
		return o, errors.New("--latency-max must not be less than --latency-min")
	}
	return o, nil
}

func (o options) cloudOptions() []iaasmock.Option {
	opts := []iaasmock.Option{
		iaasmock.WithBootDuration(o.boot),
		iaasmock.WithDeleteDuration(o.remove),
		iaasmock.WithLatency(o.latencyMin, o.latencyMax),
		iaasmock.WithListLag(o.listLag),
	}
	if o.noAuth {
		opts = append(opts, iaasmock.WithoutAuthentication())
	}
	return opts
}

// writeKey replaces the file as a whole, readable by its owner only, whatever
// mode a file of that name had.
func writeKey(cloud *iaasmock.Cloud, path string) error {
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(temporary, append(key, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // calls still waiting for their latency
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
