// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// tick between two reads of something awaited, and after slowAfter.
	tick      = time.Second
	slowTick  = 5 * time.Second
	slowAfter = 2 * time.Minute
)

// errGone says that a server is proved to be gone.
var errGone = errors.New("the server is gone")

// inventory reads servers and waits for their states. A failed read is not a
// failed machine: waits go on until their own deadline, unless the credentials
// are refused.
type inventory struct {
	client StackitClient
	clock  clock.Clock
}

// find returns the servers that match the selector, re-checked on our side,
// those included that are being deleted.
func (i *inventory) find(ctx context.Context, selector map[string]string) ([]Server, error) {
	servers, err := i.client.ListServers(ctx, selector)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(servers, func(server Server) bool { return !matches(&server, selector) }), nil
}

// read returns the server, or errGone. A single 404 proves nothing (the API is
// known for random ones): a list begun after it must not show the server either.
// What such a list shows may be old, and is not returned. The selector is for that
// list: it must match the server's labels as they are, nil matches all.
func (i *inventory) read(ctx context.Context, serverID string, selector map[string]string) (*Server, error) {
	server, err := i.client.GetServer(ctx, serverID)
	if err == nil {
		if server.Status == statusDeleted {
			return nil, errGone
		}
		return server, nil
	}
	if !isServerNotFound(err) {
		return nil, err
	}
	listed, err := i.find(ctx, selector)
	if err != nil {
		return nil, err
	}
	for _, server := range listed {
		if server.ID == serverID && server.Status != statusDeleted {
			return nil, newError(codes.Unavailable, fmt.Sprintf("server %s is listed, but was not found: it is not clear whether it exists", serverID))
		}
	}
	return nil, errGone
}

// await reads the server, beginning one tick from now, until done says so or it
// is gone (errGone). At the deadline of ctx the error tells the last state.
func (i *inventory) await(ctx context.Context, serverID string, selector map[string]string, done func(*Server) bool) (*Server, error) {
	state := "not read yet"
	for start := i.clock.Now(); ; {
		if err := i.sleep(ctx, start); err != nil {
			return nil, lateError(err, fmt.Sprintf("server %s is %s", serverID, state))
		}
		server, err := i.read(ctx, serverID, selector)
		switch {
		case err == nil && done(server):
			return server, nil
		case err == nil:
			state = server.Status
		case errors.Is(err, errGone):
			return nil, errGone
		case isRefused(err):
			return nil, interruptedError(err)
		default:
			klog.V(2).InfoS("Reading a server failed, will be tried again", "server", serverID, "err", err)
		}
	}
}

// sleep waits for the next tick of something awaited since start.
func (i *inventory) sleep(ctx context.Context, start time.Time) error {
	wait := tick
	if i.clock.Since(start) > slowAfter {
		wait = slowTick
	}
	return spi.Sleep(ctx, i.clock, wait)
}
