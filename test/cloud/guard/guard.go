// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps a run from costing more than was said. All requests of the suite, of
// the sidecar and of mcm-stackit pass one door, which sends none that would make a server too
// many; when a limit is reached, the run's context ends with the reason.
package guard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits of a run.
type Limits struct {
	// AtOnce is how many servers may exist that nobody is deleting, InAll how many may ever
	// be made.
	AtOnce, InAll int
	// Duration is how long the specs may take.
	Duration time.Duration
}

// DefaultLimits are those that a run announces.
var DefaultLimits = Limits{AtOnce: 4, InAll: 12, Duration: 30 * time.Minute}

// Guard counts servers. Its context ends at a limit.
type Guard struct {
	limits Limits
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu sync.Mutex
	// made has the servers that the API was asked for: true while they may exist and nobody
	// has asked for their deletion. Those without an ID have a number.
	made map[string]bool
}

// New returns a guard whose time begins now.
func New(parent context.Context, limits Limits) *Guard {
	ctx, cancel := context.WithCancelCause(parent)
	g := &Guard{limits: limits, cancel: cancel, made: map[string]bool{}}
	timed, stop := context.WithTimeoutCause(ctx, limits.Duration,
		fmt.Errorf("guard: the run has not ended after %s, the most that it may take: the API, or the driver, is slower than that", limits.Duration))
	context.AfterFunc(ctx, stop)
	g.ctx = timed
	return g
}

// Context ends at a limit, with the reason as its cause.
func (g *Guard) Context() context.Context { return g.ctx }

// Stop ends the run. The first reason counts.
func (g *Guard) Stop(reason error) { g.cancel(reason) }

// Trip is Stop for a limit.
func (g *Guard) Trip(format string, args ...any) { g.Stop(fmt.Errorf("guard: "+format, args...)) }

// Err returns why the run has to end, nil as long as it has not.
func (g *Guard) Err() error { return context.Cause(g.ctx) }

// Admit says whether a request for a server may be sent, and counts it.
func (g *Guard) Admit(name string) (reservation string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	live := 0
	for _, is := range g.made {
		if is {
			live++
		}
	}
	switch {
	case g.Err() != nil:
	case len(g.made) >= g.limits.InAll:
		g.Trip("a server %s was asked for after %d, the most that a run may make", name, g.limits.InAll)
	case live >= g.limits.AtOnce:
		g.Trip("a server %s was asked for beside %d, the most that a run may have at a time", name, g.limits.AtOnce)
	default:
		reservation = fmt.Sprintf("request %d", len(g.made)+1)
		g.made[reservation] = true
		return reservation, nil
	}
	return "", g.Err()
}

// Settle notes what has become of a request that was admitted.
func (g *Guard) Settle(reservation string, e Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case e.Succeeded() && e.AnsweredID() != "":
		delete(g.made, reservation)
		g.made[e.AnsweredID()] = true
	case !e.Unknown():
		delete(g.made, reservation)
	}
}

// Observe notes deletions.
func (g *Guard) Observe(e Exchange) {
	if e.Kind() != DeleteServer || !e.Succeeded() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.made[e.ServerID()]; ok {
		g.made[e.ServerID()] = false
	}
}

// Seen compares what the API shows of the run with the limits: there may be servers that
// nobody asked for.
func (g *Guard) Seen(live int) {
	if live > g.limits.AtOnce {
		g.Trip("the API shows %d servers of this run at a time, at most %d may be", live, g.limits.AtOnce)
	}
}

// Servers returns the IDs of all servers that the API has answered a request with.
func (g *Guard) Servers() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for made := range g.made {
		if id.MatchString(made) {
			ids = append(ids, made)
		}
	}
	slices.Sort(ids)
	return ids
}
