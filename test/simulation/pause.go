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

// The manager's default lease.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// newFence returns the fence of a leader with this lease, as cmd/machine-controller makes it.
func newFence(clock clock.WithTicker) *spi.Fence {
	return spi.NewFence(clock, max(time.Second, leaseDuration-renewDeadline-retryPeriod),
		max(leaseDuration, renewDeadline+retryPeriod+time.Second))
}

// stillness is a pause of a process, with its consequences. Before the pause, the lease was renewed within a
// retry period.
type stillness struct {
	// length of the pause; 0 means no pause.
	length time.Duration
	// takeover is when another process takes the lease, counted from the beginning, unless it was renewed before;
	// 0 means that there is no other process.
	takeover time.Duration
	// renewal is the time from the end of the pause until a lease that was not taken is renewed; notice is the time
	// until a process that has lost its lease ends.
	renewal, notice time.Duration
	// fresh is the time from the end of the pause until the process's cache is up to date.
	fresh time.Duration
}

// drawStillness draws a pause: too short to count as a pause, shorter than the lease, or longer.
func drawStillness(rng *rand.Rand) stillness {
	s := stillness{
		length: pick(rng, between(rng, time.Second, 3*time.Second), between(rng, 3*time.Second, leaseDuration+retryPeriod),
			between(rng, leaseDuration, time.Minute), between(rng, leaseDuration, 3*time.Minute)),
		renewal: between(rng, 0, retryPeriod),
		notice:  pick(rng, renewDeadline+retryPeriod, between(rng, 0, renewDeadline+retryPeriod)),
		fresh:   between(rng, 0, renewDeadline),
	}
	if rng.IntN(4) > 0 {
		// The lease was renewed up to a retry period before, and the other process tries to take it as often.
		s.takeover = between(rng, leaseDuration-retryPeriod, leaseDuration+retryPeriod)
	}
	return s
}

// lost reports whether another process leads afterwards.
func (s stillness) lost() bool { return s.takeover > 0 && s.takeover < s.length+s.renewal }

// standStill pauses the process from now on, if it leads.
func (c *cluster) standStill(p *process, s stillness) {
	if s.length == 0 || c.running() != p || !p.halt(s) {
		return
	}
	c.world.log("%s IS PAUSED for %s", p.name, s.length)
	c.world.spawn(func() {
		if !c.outlast(p, s) { // nothing else would end it without its lease
			p.end("ENDS with the run")
		}
	})
}

// outlast runs the consequences of the pause, each at its time; it returns false if the run ends first.
func (c *cluster) outlast(p *process, s stillness) bool {
	type event struct {
		at time.Duration
		do func()
	}
	events := []event{{s.length, p.wake}}
	if s.lost() {
		events = append(events,
			event{s.takeover, func() { c.succeed(p) }},
			event{max(s.length+s.notice, s.takeover), func() { p.end("notices that another process leads, and ends") }})
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

// succeed makes another process the leader in place of a process that is paused or has just woken up.
func (c *cluster) succeed(p *process) {
	c.mu.Lock()
	leads := c.leader == p
	if leads {
		c.leader = nil
	}
	c.mu.Unlock()
	if leads {
		c.world.log("%s loses the lease to another process", p.name)
		c.lead()
	}
}

// spreadClock is the clock of all processes: the bubble's. The bubble fires timers that are due at the same
// instant in random order, so each timer fires a nanosecond after earlier timers due at that instant.
type spreadClock struct {
	clock.RealClock

	mu sync.Mutex
	// taken are the instants, in nanoseconds, at which a timer fires.
	taken map[int64]bool
}

func newSpreadClock() *spreadClock { return &spreadClock{taken: map[int64]bool{}} }

// spread returns the duration for a timer that is started now.
func (c *spreadClock) spread(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now().UnixNano()
	at := now + max(0, int64(d))
	if at < now { // overflow: never
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

// processClock is the clock of a process that may be paused. During a pause its time does not change, and timers
// that come due wait until the process wakes up; then it shows the common time. It is set to the common time
// whenever it is read, and when a timer comes due.
type processClock struct {
	*clocktesting.FakeClock
	// real is the common clock.
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

// set sets the clock to the common time and lets timers fire, unless the process is paused.
func (c *processClock) set() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.SetTime(c.real.Now())
	}
}

// timer returns the duration by this clock for a timer that is started now, and makes the clock be set when it
// is due. A paused clock is behind.
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

// processTicker ticks one period after the last call of C, which spi.Fence makes after each tick.
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
