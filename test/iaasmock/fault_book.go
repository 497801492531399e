// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Inject adds a fault and returns what takes it away again. Calls it already
// hit are not undone. It panics on a fault that Validate refuses.
func (c *Cloud) Inject(f Fault) (remove func()) {
	id := c.inject(f).ID
	return func() { c.RemoveFault(id) }
}

// ActiveFault is a fault that was injected and is not over.
type ActiveFault struct {
	// ID names it, see RemoveFault. No other fault of this cloud gets it.
	ID string
	Fault
	// Hits is how many calls it has hit.
	Hits int
	// Remaining is how many it will still hit; 0 if Count is.
	Remaining int
	// StartsAt is when it begins; zero if it began with Inject.
	StartsAt time.Time
	// EndsAt is when it is over; zero if Duration is 0.
	EndsAt time.Time
}

// Faults returns the faults that are in force or have yet to begin, in the
// order they were injected.
func (c *Cloud) Faults() []ActiveFault {
	return c.faults.active(c.clock.Now())
}

// RemoveFault takes a fault away; false if there is none with this ID, or no more.
func (c *Cloud) RemoveFault(id string) bool {
	return c.faults.remove(func(e *faultEntry) bool { return e.id == id }) > 0
}

// ClearFaults takes all faults away.
func (c *Cloud) ClearFaults() {
	c.faults.remove(func(*faultEntry) bool { return true })
}

func (c *Cloud) inject(f Fault) ActiveFault {
	if err := f.Validate(); err != nil {
		panic("iaasmock: " + err.Error())
	}
	f.Header = f.Header.Clone()
	if f.Stale > 0 {
		c.keepGhosts(f.Stale)
	}
	return c.faults.add(f, c.clock.Now(), c.dice)
}

// faultBook holds the faults; every call passes through take exactly once.
type faultBook struct {
	mu      sync.Mutex
	entries []*faultEntry
	added   int
	// changed is closed when a fault is added or taken away, if somebody asked.
	changed chan struct{}
}

type faultEntry struct {
	fault         Fault
	id            string
	startsAt      time.Time
	endsAt        time.Time // zero: no end
	hits          int
	onlyDelays    bool
	labelSelector labels.Selector
	// rng is its own: which of the calls that fit it hits does not depend on
	// what else happens.
	rng *rand.Rand
}

func (b *faultBook) add(f Fault, now time.Time, d dice) ActiveFault {
	selector, _ := labels.Parse(f.LabelSelector) // validated
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added++
	entry := &faultEntry{
		fault: f, id: fmt.Sprintf("f%d", b.added), startsAt: now.Add(f.After),
		onlyDelays: !f.hasEffect(), labelSelector: selector, rng: d.stream(fmt.Sprintf("fault %d", b.added)),
	}
	if f.Duration > 0 {
		entry.endsAt = entry.startsAt.Add(f.Duration)
	}
	b.entries = append(b.entries, entry)
	b.announce()
	return entry.view()
}

func (b *faultBook) remove(these func(*faultEntry) bool) (removed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.entries)
	b.entries = slices.DeleteFunc(b.entries, these)
	if removed = before - len(b.entries); removed > 0 {
		b.announce()
	}
	return removed
}

func (b *faultBook) active(now time.Time) []ActiveFault {
	b.remove(func(e *faultEntry) bool { return e.over(now) })
	b.mu.Lock()
	defer b.mu.Unlock()
	views := make([]ActiveFault, 0, len(b.entries))
	for _, entry := range b.entries {
		views = append(views, entry.view())
	}
	return views
}

// incident is what meets a call: the zero Fault if nothing does, and the delays
// of all that hit it.
type incident struct {
	Fault
	delay, answerDelay time.Duration
	// faults are the IDs of those that hit.
	faults []string
}

// take decides what meets this call, and counts it.
func (b *faultBook) take(call *faultCall) incident {
	b.mu.Lock()
	defer b.mu.Unlock()
	var met incident
	decided := false
	for _, entry := range b.entries {
		if decided && !entry.onlyDelays || !entry.hit(call) {
			continue
		}
		met.faults = append(met.faults, entry.id)
		met.delay += entry.delay()
		met.answerDelay += entry.fault.AnswerDelay
		if !entry.onlyDelays {
			met.Fault, decided = entry.fault, true
		}
	}
	b.entries = slices.DeleteFunc(b.entries, func(e *faultEntry) bool { return e.over(call.now) })
	return met
}

// hit decides whether the fault hits this call, and counts it if so.
func (e *faultEntry) hit(call *faultCall) bool {
	if call.now.Before(e.startsAt) || e.over(call.now) || !e.fits(call) {
		return false
	}
	if p := e.fault.Probability; p > 0 && p < 1 && e.rng.Float64() >= p {
		return false
	}
	e.hits++
	return true
}

func (e *faultEntry) over(now time.Time) bool {
	usedUp := e.fault.Count > 0 && e.hits >= e.fault.Count
	return usedUp || !e.endsAt.IsZero() && !now.Before(e.endsAt)
}

func (e *faultEntry) delay() time.Duration {
	f := &e.fault
	return f.Delay + spread(e.rng, f.DelayMax-f.Delay, f.DelayDistribution)
}

func (e *faultEntry) view() ActiveFault {
	view := ActiveFault{ID: e.id, Fault: e.fault, Hits: e.hits, EndsAt: e.endsAt}
	view.Header = e.fault.Header.Clone()
	if e.fault.Count > 0 {
		view.Remaining = e.fault.Count - e.hits
	}
	if e.fault.After > 0 {
		view.StartsAt = e.startsAt
	}
	return view
}
