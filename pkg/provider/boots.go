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
	// failingEarly is how long a new server is read every tick: one for which there
	// is no host fails within seconds.
	failingEarly = 5 * time.Second
	// bootMargin is how much earlier than usual a server may well run.
	bootMargin = 3 * time.Second
	// lullTick is the most between two reads in a lull.
	lullTick = 30 * time.Second
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

// bootLifetime is how long is remembered what no new boot confirms: a rolled class
// does not come back.
const bootLifetime = 24 * time.Hour

func newBoots(clock clock.PassiveClock) *boots {
	return &boots{clock: clock, usual: map[classKey]usualBoot{}}
}

// note learns from a server that ran that long after it was created, as the cloud
// tells: when the driver noticed depends on when it looked. A faster one counts at
// once, slower ones little by little.
func (b *boots) note(key classKey, took time.Duration) {
	if took <= 0 { // the cloud does not tell
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	maps.DeleteFunc(b.usual, func(_ classKey, old usualBoot) bool { return now.Sub(old.at) > bootLifetime })
	if usual, known := b.usual[key]; known && took > usual.took {
		took = usual.took + (took-usual.took)/10
	}
	b.usual[key] = usualBoot{took, now}
}

// lull is when reads of a server are of little use that was made then; none if that
// is not known.
func (b *boots) lull(key classKey, made time.Time) lull {
	b.mu.Lock()
	defer b.mu.Unlock()
	usual := b.usual[key].took
	if usual == 0 || made.IsZero() {
		return lull{}
	}
	return lull{made: made, from: made.Add(failingEarly), to: made.Add(usual - min(usual/10, bootMargin))}
}

// lull is a time in which nothing is expected to happen to a server made before it;
// none if it ends before it begins.
type lull struct{ made, from, to time.Time }

// over returns since when something is expected to happen that is awaited since
// start, and the least time between two reads: after the lull it may be any moment.
func (l lull) over(start, now time.Time) (since time.Time, least time.Duration) {
	if l.from.Before(l.to) && !now.Before(l.to) {
		return l.to, quickTick
	}
	return start, tick
}

// after returns when to read instead of due: in the lull that is at twice the
// server's age, or at its end. So the number of reads hardly depends on how long it
// is, but they never stop: one server that took minutes, as the first with a new image
// may, must not keep the next waiting that takes seconds, and a server may fail or
// vanish at any time.
func (l lull) after(due, now time.Time) time.Time {
	if !due.After(l.from) || !due.Before(l.to) {
		return due
	}
	if slow := now.Add(min(now.Sub(l.made), lullTick)); slow.Before(l.to) {
		return slow
	}
	return l.to
}
