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
	// made are the servers that the API was asked for: by their ID or, as long as it is not
	// known, by the number of the request.
	made     map[string]*made
	requests int
}

// made is a server that may exist.
type made struct {
	name string
	// deleting says that somebody has asked for its deletion.
	deleting bool
}

// New returns a guard whose time begins now.
func New(parent context.Context, limits Limits) *Guard {
	timed, stop := context.WithTimeoutCause(parent, limits.Duration,
		fmt.Errorf("guard: the run has not ended after %s, the most that it may take: the API, or the driver, is slower than that", limits.Duration))
	// Below the time, so that the timer's end never takes the place of the reason.
	ctx, cancel := context.WithCancelCause(timed)
	context.AfterFunc(ctx, stop)
	return &Guard{limits: limits, ctx: ctx, cancel: cancel, made: map[string]*made{}}
}

// Context ends at a limit, with the reason as its cause.
func (g *Guard) Context() context.Context { return g.ctx }

// Stop ends the run. The first reason counts.
func (g *Guard) Stop(reason error) { g.cancel(reason) }

// Trip is Stop for a limit.
func (g *Guard) Trip(format string, args ...any) { g.Stop(fmt.Errorf("guard: "+format, args...)) }

// Err returns why the run has to end, nil as long as it has not.
func (g *Guard) Err() error { return context.Cause(g.ctx) }

// Admit says whether a request for a server may be sent, and counts it. Who asks again for a
// server of a name has looked, and found that an earlier request made none.
func (g *Guard) Admit(name string) (reservation string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgetRequest(name)
	live := 0
	for _, server := range g.made {
		if !server.deleting {
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
		g.requests++
		reservation = fmt.Sprintf("request %d", g.requests)
		g.made[reservation] = &made{name: name}
		return reservation, nil
	}
	return "", g.Err()
}

// forgetRequest forgets a request whose outcome is not known.
func (g *Guard) forgetRequest(name string) {
	for key, server := range g.made {
		if server.name == name && !id.MatchString(key) {
			delete(g.made, key)
			return
		}
	}
}

// Settle notes what has become of a request that was admitted.
func (g *Guard) Settle(reservation string, e Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case e.Succeeded() && e.AnsweredID() != "":
		delete(g.made, reservation)
		g.know(e.AnsweredID(), e.SentName())
	case !e.Unknown():
		delete(g.made, reservation)
	}
}

func (g *Guard) know(server, name string) {
	if g.made[server] == nil {
		g.made[server] = &made{name: name}
	}
}

// Observe notes deletions.
func (g *Guard) Observe(e Exchange) {
	if e.Kind() != DeleteServer || !e.Succeeded() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if server := g.made[e.ServerID()]; server != nil {
		server.deleting = true
	}
}

// Seen counts the servers, names by ID, that the API shows of the run and nobody is deleting.
// There may be servers that nobody asked for, or whose request was not answered.
func (g *Guard) Seen(live map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for server, name := range live {
		if g.made[server] == nil {
			g.forgetRequest(name)
			g.know(server, name)
		}
	}
	if len(live) > g.limits.AtOnce {
		g.Trip("the API shows %d servers of this run at a time, at most %d may be", len(live), g.limits.AtOnce)
	}
	if len(g.made) > g.limits.InAll {
		g.Trip("the API has shown %d servers of this run, at most %d may be made", len(g.made), g.limits.InAll)
	}
}

// Servers returns the IDs of all servers of the run that the API has shown.
func (g *Guard) Servers() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for key := range g.made {
		if id.MatchString(key) {
			ids = append(ids, key)
		}
	}
	slices.Sort(ids)
	return ids
}

// Unanswered returns the names of servers that were asked for, with nobody knowing whether the
// API has made them: there was no answer, or one with 5xx, and nothing has shown them since.
func (g *Guard) Unanswered() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for key, server := range g.made {
		if !id.MatchString(key) {
			names = append(names, server.name)
		}
	}
	slices.Sort(names)
	return names
}
