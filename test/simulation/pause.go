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
	if s.length == 0 || c.running() != p || !p.halt() {
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
	events := []event{{s.length, p.wake}, {s.length + s.fresh, p.catchUp}}
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

// AfterFunc implements clock.WithDelayedExecution.
func (c *spreadClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.RealClock.AfterFunc(c.spread(d), f)
}

// After implements clock.Clock.
func (c *spreadClock) After(d time.Duration) <-chan time.Time { return c.RealClock.After(c.spread(d)) }

// Sleep implements clock.Clock.
func (c *spreadClock) Sleep(d time.Duration) { c.RealClock.Sleep(c.spread(d)) }

// processClock is the clock of a process that may stand still. Meanwhile it shows no
// new time, and timers that come due wait until the process wakes up; then it shows
// what all others show.
type processClock struct {
	// real is what all others live by.
	real *spreadClock

	mu sync.Mutex
	// stoppedAt is zero unless the process stands still.
	stoppedAt time.Time
	// due are the timers that came due meanwhile.
	due []func()
}

var _ clock.WithTicker = (*processClock)(nil)

func (c *processClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stoppedAt.IsZero() {
		c.stoppedAt = c.real.Now()
	}
}

func (c *processClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stoppedAt = time.Time{}
	due := c.due
	c.due = nil
	for _, fire := range due {
		fire()
	}
}

// atWork runs f, with the lock, as soon as the process does not stand still.
func (c *processClock) atWork(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stoppedAt.IsZero() {
		f()
		return
	}
	c.due = append(c.due, f)
}

// Now implements clock.PassiveClock.
func (c *processClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stoppedAt.IsZero() {
		return c.real.Now()
	}
	return c.stoppedAt
}

// Since implements clock.PassiveClock.
func (c *processClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c *processClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *processClock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock.
func (c *processClock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

// NewTimer implements clock.Clock.
func (c *processClock) NewTimer(d time.Duration) clock.Timer { return c.newTimer(d, 0) }

// NewTicker implements clock.WithTicker.
func (c *processClock) NewTicker(d time.Duration) clock.Ticker {
	return processTicker{c.newTimer(d, d)}
}

func (c *processClock) newTimer(d, period time.Duration) *processTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &processTimer{clock: c, times: make(chan time.Time, 1), period: period}
	t.start(d)
	return t
}

// processTimer is a timer of a process, or its ticker. The clock's lock guards it.
type processTimer struct {
	clock *processClock
	times chan time.Time
	// period is more than 0 for a ticker.
	period time.Duration
	timer  clock.Timer
	active bool
	// turn counts starts, so that what was due for an earlier one is not heard of.
	turn int
}

func (t *processTimer) start(d time.Duration) {
	t.turn++
	t.active = true
	turn := t.turn
	t.timer = t.clock.real.AfterFunc(d, func() { t.clock.atWork(func() { t.fire(turn) }) })
}

func (t *processTimer) fire(turn int) {
	if turn != t.turn || !t.active {
		return
	}
	t.active = false
	select {
	case t.times <- t.clock.real.Now():
	default: // a tick that nobody has taken
	}
	if t.period > 0 {
		t.start(t.period)
	}
}

// end stops the timer, and takes back what nobody has received.
func (t *processTimer) end() (wasActive bool) {
	wasActive = t.active
	t.active = false
	t.timer.Stop()
	select {
	case <-t.times:
	default:
	}
	return wasActive
}

// C implements clock.Timer.
func (t *processTimer) C() <-chan time.Time { return t.times }

// Stop implements clock.Timer.
func (t *processTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.end()
}

// Reset implements clock.Timer.
func (t *processTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	wasActive := t.end()
	t.start(d)
	return wasActive
}

// processTicker is a processTimer whose Stop answers nothing.
type processTicker struct{ timer *processTimer }

// C implements clock.Ticker.
func (t processTicker) C() <-chan time.Time { return t.timer.C() }

// Stop implements clock.Ticker.
func (t processTicker) Stop() { t.timer.Stop() }
