// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// The manager's lease, as it is by default.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// newFence is the fence of a leader with this lease, as cmd/machine-controller makes
// it.
func newFence(clock clock.WithTicker) *spi.Fence {
	return spi.NewFence(clock, max(time.Second, leaseDuration-renewDeadline-retryPeriod), max(leaseDuration, renewDeadline+retryPeriod+time.Second))
}

// stillness is a time in which a process stands still, and what comes of it. Its
// lease was renewed within a retry period before.
type stillness struct {
	// length of it; 0 is none.
	length time.Duration
	// takeover is when another process takes the lease, from the beginning, unless it
	// was renewed before; 0 means that there is no other.
	takeover time.Duration
	// renewal is how long after its end the lease is renewed that nobody took, notice
	// when the process ends that has lost it.
	renewal, notice time.Duration
	// fresh is how long after its end the process's cache shows the present.
	fresh time.Duration
}

// drawStillness draws one: within what passes for no pause, within the lease, or
// beyond.
func drawStillness(rng *rand.Rand) stillness {
	s := stillness{
		length: pick(rng, between(rng, time.Second, 3*time.Second), between(rng, 3*time.Second, leaseDuration+retryPeriod),
			between(rng, leaseDuration, time.Minute), between(rng, leaseDuration, 3*time.Minute)),
		renewal: between(rng, 0, retryPeriod),
		notice:  pick(rng, renewDeadline+retryPeriod, between(rng, 0, renewDeadline+retryPeriod)),
		fresh:   between(rng, 0, renewDeadline),
	}
	if rng.IntN(4) > 0 {
		// Renewed up to a retry period before, and tried to take as often.
		s.takeover = between(rng, leaseDuration-retryPeriod, leaseDuration+retryPeriod)
	}
	return s
}

// lost says whether another process leads afterwards.
func (s stillness) lost() bool { return s.takeover > 0 && s.takeover < s.length+s.renewal }

// standStill lets the process stand still from now on, if it leads.
func (c *cluster) standStill(p *process, s stillness) {
	if s.length == 0 || c.running() != p || !p.halt(s) {
		return
	}
	c.world.log("%s STANDS STILL for %s", p.name, s.length)
	c.world.spawn(func() {
		if !c.outlast(p, s) { // nobody would see to it that it ends without its lease
			p.end("ENDS, since the run does")
		}
	})
}

// outlast lets come what comes of the stillness, each in its time; false if the run ends
// before.
func (c *cluster) outlast(p *process, s stillness) bool {
	type event struct {
		at time.Duration
		do func()
	}
	events := []event{{s.length, p.wake}}
	if s.lost() {
		events = append(events,
			event{s.takeover, func() { c.succeed(p) }},
			event{max(s.length+s.notice, s.takeover), func() { p.end("sees that another leads, and ends") }})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	passed := time.Duration(0)
	for _, e := range events {
		if !c.world.sleep(e.at - passed) {
			return false
		}
		passed = e.at
		e.do()
	}
	return true
}

// succeed lets another process lead in place of one that stands still, or has just
// woken up.
func (c *cluster) succeed(p *process) {
	c.mu.Lock()
	leads := c.leader == p
	if leads {
		c.leader = nil
	}
	c.mu.Unlock()
	if leads {
		c.world.log("%s leads no more, another process does", p.name)
		c.lead()
	}
}

// spreadClock is the time that all live by, the bubble's. Timers that are due at the same instant fire in
// a random order there, so it lets each fire a nanosecond after those that were started before it.
type spreadClock struct {
	clock.RealClock

	mu sync.Mutex
	// taken are the instants at which a timer fires, in nanoseconds.
	taken map[int64]bool
}

func newSpreadClock() *spreadClock { return &spreadClock{taken: map[int64]bool{}} }

// spread returns how long a timer takes that is started now.
func (c *spreadClock) spread(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now().UnixNano()
	at := now + max(0, int64(d))
	if at < now { // never
		return d
	}
	for c.taken[at] {
		at++
	}
	c.taken[at] = true
	return time.Duration(at - now)
}

// NewTimer implements clock.Clock.
func (c *spreadClock) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(c.spread(d)) }

// processClock is the clock of a process that may stand still. Meanwhile it shows no new time, and timers
// that come due wait until the process wakes up; then it shows what all others show. It is set to their time
// whenever it is looked at, and when a timer comes due.
type processClock struct {
	*clocktesting.FakeClock
	// real is what all others live by.
	real *spreadClock

	mu      sync.Mutex
	stopped bool
}

var _ clock.WithTicker = (*processClock)(nil)

func newProcessClock(real *spreadClock) *processClock {
	return &processClock{FakeClock: clocktesting.NewFakeClock(real.Now()), real: real}
}

func (c *processClock) stop() {
	c.set()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *processClock) resume() {
	c.mu.Lock()
	c.stopped = false
	c.mu.Unlock()
	c.set()
}

// set shows the time of all others, and lets timers fire, unless the process stands still.
func (c *processClock) set() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.SetTime(c.real.Now())
	}
}

// timer returns how long a timer takes by this clock that is started now, and sees to it that the clock is
// set then. A clock that stands still is behind.
func (c *processClock) timer(d time.Duration) time.Duration {
	c.set()
	d = c.real.spread(d)
	c.real.AfterFunc(d, c.set)
	return d + c.real.Since(c.FakeClock.Now())
}

// Now implements clock.PassiveClock.
func (c *processClock) Now() time.Time {
	c.set()
	return c.FakeClock.Now()
}

// Since implements clock.PassiveClock.
func (c *processClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c *processClock) After(d time.Duration) <-chan time.Time { return c.FakeClock.After(c.timer(d)) }

// Sleep implements clock.Clock.
func (c *processClock) Sleep(d time.Duration) { <-c.After(d) }

// NewTimer implements clock.Clock.
func (c *processClock) NewTimer(d time.Duration) clock.Timer {
	return &processTimer{c.FakeClock.NewTimer(c.timer(d)), c}
}

// processTimer is a timer of a process.
type processTimer struct {
	clock.Timer
	clock *processClock
}

// Reset implements clock.Timer.
func (t *processTimer) Reset(d time.Duration) bool { return t.Timer.Reset(t.clock.timer(d)) }

// NewTicker implements clock.WithTicker.
func (c *processClock) NewTicker(d time.Duration) clock.Ticker {
	return &processTicker{c.NewTimer(d), d}
}

// processTicker ticks a period after it was asked for its channel the last time, as spi.Fence does after
// each tick.
type processTicker struct {
	timer  clock.Timer
	period time.Duration
}

// C implements clock.Ticker.
func (t *processTicker) C() <-chan time.Time {
	t.timer.Reset(t.period)
	return t.timer.C()
}

// Stop implements clock.Ticker.
func (t *processTicker) Stop() { t.timer.Stop() }
