// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// processClock is the clock of a process that may stand still. Meanwhile it shows no
// new time, and timers that come due wait until the process wakes up; then it shows
// what all others show.
type processClock struct {
	// real is what all others live by.
	real clock.RealClock

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
