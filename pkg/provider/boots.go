// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// earlyBoot is how long nothing is expected of a server whose class is not known:
	// hardly any runs by then, and most for which there is no host have failed.
	earlyBoot = 5 * time.Second
	// bootMargin is how much earlier than usual a server may well run.
	bootMargin = 3 * time.Second
	// quickestLull and slowestLull bound the time between two reads in a lull, which
	// is half of the server's age.
	quickestLull = 5 * time.Second
	slowestLull  = 30 * time.Second
)

// boots remembers how long the servers of a class take to run, so that there are
// few reads while nothing is expected to happen: their number hardly grows with
// that time.
type boots struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	usual map[classKey]usualBoot
}

// usualBoot is the usual time of a class and when it was last noted.
type usualBoot struct {
	took time.Duration
	at   time.Time
}

// bootLifetime is how long is remembered, at least, what no new boot confirms: a
// rolled class does not come back.
const bootLifetime = 24 * time.Hour

func newBoots(clock clock.PassiveClock) *boots {
	return &boots{clock: clock, usual: map[classKey]usualBoot{}}
}

// note learns from a server that was made then and is seen to run now. It may have
// run for a while: the cloud tells how long it took since it began to make it. A
// faster one counts at once, slower ones little by little. A server that was made
// nobody knows when teaches nothing.
func (b *boots) note(key classKey, made time.Time, server *Server) {
	if made.IsZero() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	took := now.Sub(made)
	if server.LaunchedAt.After(server.CreatedAt) {
		took = min(took, server.LaunchedAt.Sub(server.CreatedAt))
	}
	maps.DeleteFunc(b.usual, func(_ classKey, old usualBoot) bool { return now.Sub(old.at) > bootLifetime })
	if usual := b.usual[key].took; usual > 0 && took > usual {
		took = usual + min(took-usual, usual)/10
	}
	b.usual[key] = usualBoot{took, now}
}

// lull is when reads of a server are of little use that was made then; none if it is
// not known when, or if the class boots too fast for one.
func (b *boots) lull(key classKey, made time.Time) lull {
	if made.IsZero() {
		return lull{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	usual := b.usual[key].took
	expected := usual - min(usual/10, bootMargin)
	switch {
	case usual == 0:
		return lull{made: made, to: made.Add(earlyBoot)}
	case expected <= earlyBoot:
		return lull{}
	default:
		return lull{made: made, to: made.Add(expected), learned: true}
	}
}

// lull is a time in which nothing is expected to happen to a server, from when it was
// made on; zero if there is none.
type lull struct {
	made, to time.Time
	// learned is set if the class told its end: the server may run any moment then.
	learned bool
}

// awaited returns since when something is expected to happen that is awaited since
// start, and the least time between two reads: after a learned lull it may be any
// moment.
func (l lull) awaited(start, now time.Time) (since time.Time, least time.Duration) {
	if l.learned && !now.Before(l.to) {
		return l.to, quickTick
	}
	return start, tick
}

// after returns when to read instead of due: in the lull that is when the server is
// older by half, or at its end. So the number of reads hardly depends on how long
// it is, but they never stop: one server that took minutes, as the first with a new
// image may, must not keep the next waiting that takes seconds, and a server may fail
// or vanish at any time. One that was not learned ends with a tick: so those that were
// made one after another, and seen in one list, are read together again.
func (l lull) after(due, now time.Time) time.Time {
	switch slow := now.Add(min(max(now.Sub(l.made)/2, quickestLull), slowestLull)); {
	case !now.Before(l.to):
		return due
	case !l.learned && due.After(l.to):
		return due
	case slow.Before(l.to):
		return slow
	default:
		return l.to
	}
}
