// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
)

const (
	// tick is the least time between two reads of something awaited, slowTick the
	// most, but for lulls; quickTick is the least when it is expected to happen.
	tick      = time.Second
	slowTick  = 10 * time.Second
	quickTick = tick / 2
	// ticksOfAge is the part of the time waited so far that a tick takes: what takes
	// long is noticed a tenth later, and its reads become few.
	ticksOfAge = 10
)

// errGone says that a server is proved to be gone.
var errGone = errors.New("the server is gone")

// look is the inventory as one call uses it: within its scope.
type look struct {
	*inventory
	// scope holds the labels that the call's servers have in common with those of
	// other calls; nil is everything.
	scope map[string]string
}

// find is inventory.find within the scope.
func (l look) find(ctx context.Context, selector map[string]string, soon when) reading[[]Server] {
	if selector == nil {
		return l.inventory.find(ctx, nil, nil, soon)
	}
	return l.inventory.find(ctx, l.scope, selector, soon)
}

// get is inventory.get within the scope.
func (l look) get(ctx context.Context, serverID string, soon when) (*Server, error) {
	return l.inventory.get(ctx, l.scope, serverID, soon)
}

// read returns the server, or errGone. A single 404 proves nothing (the API is
// known for random ones): a list begun after it must not show the server either.
// What such a list shows may be old, and is not returned. The selector is for that
// list: it must match the server's labels as they are, nil matches all.
func (l look) read(ctx context.Context, serverID string, selector map[string]string, soon when) (*Server, error) {
	server, err := l.get(ctx, serverID, soon)
	if err == nil {
		if server.Status == statusDeleted {
			return nil, errGone
		}
		return server, nil
	}
	if !isServerNotFound(err) {
		return nil, err
	}
	listed := l.find(ctx, selector, when{patient: true})
	if listed.err != nil {
		return nil, listed.err
	}
	for _, server := range listed.value {
		if server.ID == serverID && server.Status != statusDeleted {
			return nil, newError(codes.Unavailable, fmt.Sprintf("server %s is listed, but was not found: it is not clear whether it exists", serverID))
		}
	}
	return nil, errGone
}

// await reads the server, beginning one tick from now or with its lull's first read,
// until done says so or it is gone (errGone). In the lull, which others may teach
// meanwhile, it reads seldom. At the deadline of ctx the error tells the last state. A
// failed read is not a failed machine: the wait goes on, unless the credentials are
// refused.
func (l look) await(ctx context.Context, serverID string, selector map[string]string, quiet func() lull, done func(*Server) bool) (*Server, error) {
	state := "not read yet"
	var lulled lull
	for start := l.clock.Now(); ; {
		now := l.clock.Now()
		if !lulled.learned || now.Before(lulled.to) {
			lulled = quiet() // one that is over stays so, whatever others teach
		}
		since, least := lulled.awaited(start, now)
		next := when{due: lulled.after(now.Add(tickAt(now.Sub(since), least)), now)}
		server, err := l.read(ctx, serverID, selector, next)
		switch {
		case err == nil && done(server):
			return server, nil
		case errors.Is(err, errGone):
			return nil, errGone
		case isRefused(err):
			return nil, interruptedError(err)
		case ctx.Err() != nil:
			return nil, lateError(ctx.Err(), fmt.Sprintf("server %s is %s", serverID, state))
		case err == nil:
			state = server.Status
		default:
			klog.V(2).InfoS("Reading a server failed, will be tried again", "server", serverID, "err", err)
		}
	}
}

// noLull is for what may happen any time.
func noLull() lull { return lull{} }

// nextTick is when to read again something that is awaited since start.
func (l look) nextTick(start time.Time) when {
	now := l.clock.Now()
	return when{due: now.Add(tickAt(now.Sub(start), tick))}
}

// tickAt is the time to the next read of something that is awaited for so long.
func tickAt(age, least time.Duration) time.Duration {
	return min(max(age/ticksOfAge, least), slowTick)
}
