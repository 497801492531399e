// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"math/rand/v2"
	"slices"
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

// standStill lets the process stand still from now on.
func (p *process) standStill(s stillness) {
	if s.length == 0 || !p.halt() {
		return
	}
	p.cluster.world.log("%s STANDS STILL for %s", p.name, s.length)
	p.cluster.world.spawn(func() {
		if !p.outlast(s) { // nobody would see to it that it ends without its lease
			p.end("ENDS, since the run does")
		}
	})
}

// outlast lets come what comes of the stillness, each in its time; false if the run ends
// before.
func (p *process) outlast(s stillness) bool {
	type event struct {
		at time.Duration
		do func()
	}
	events := []event{{s.length, p.wake}, {s.length + s.fresh, p.catchUp}}
	if s.lost() {
		events = append(events,
			event{s.takeover, func() { p.cluster.succeed(p) }},
			event{max(s.length+s.notice, s.takeover), func() { p.end("sees that another leads, and ends") }})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	passed := time.Duration(0)
	for _, e := range events {
		if !p.cluster.world.sleep(e.at - passed) {
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

// halt begins a stillness; false if the process does not lead, or has not come to
// terms with the last one.
func (p *process) halt() bool {
	if p.stops == nil || p.cluster.running() != p {
		return false
	}
	present := p.cluster.api.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed || p.past != nil {
		return false
	}
	p.still, p.past = make(chan struct{}), present
	p.stops.stop()
	return true
}

// wake ends a stillness.
func (p *process) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.still == nil {
		return
	}
	if !p.crashed {
		p.cluster.world.log("%s goes on", p.name)
	}
	p.stops.resume()
	close(p.still)
	p.still = nil
}

// catchUp lets the process's cache follow the API server again.
func (p *process) catchUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = nil
}

// standing says whether the process stands still.
func (p *process) standing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.still != nil
}

// awake waits until the process does not stand still; false if it has ended.
func (p *process) awake() bool {
	for {
		p.mu.Lock()
		still, crashed := p.still, p.crashed
		p.mu.Unlock()
		if still == nil {
			return !crashed
		}
		<-still
	}
}

// remembers is what the process takes for the present though it is not; nil if it
// knows better.
func (p *process) remembers() snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.past
}
