// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command iaasmock serves a fake STACKIT IaaS API until it is interrupted.
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
	for _, fault := range o.faults {
		cloud.Inject(fault)
	}
	printIntro(out, "http://"+listener.Addr().String(), o, cloud.Seed())
	return serve(ctx, listener, cloud)
}

// writeKey writes a new file, readable by its owner only, in place of an old one.
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
