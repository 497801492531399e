// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
)

// Active is an injected fault that is not over.
type Active struct {
	// ID is what Book.Remove takes. It is unique in the Book.
	ID string
	Fault
	// Hits is the number of calls that it has hit.
	Hits int
	// Remaining is the number of calls that it will still hit; 0 if Count is 0.
	Remaining int
	// StartsAt is when it begins; zero if After is 0.
	StartsAt time.Time
	// EndsAt is when it is over; zero if Duration is 0.
	EndsAt time.Time
}

// entry is an added fault with its own state.
type entry struct {
	fault         Fault
	id            string
	startsAt      time.Time
	endsAt        time.Time // zero: no end
	hits          int
	onlyDelays    bool
	labelSelector labels.Selector
	// through is the limit of the calls that Rate lets through; nil without one.
	through *rate.Limiter
	// rng is the entry's own, so that the choice of calls does not depend on other faults
	// and calls.
	rng *rand.Rand
}

// hit decides whether the fault hits this call, and counts it if so.
func (e *entry) hit(call *Call) bool {
	if call.Now.Before(e.startsAt) || e.over(call.Now) || !e.fits(call) {
		return false
	}
	if e.through != nil && e.through.AllowN(call.Now, 1) {
		return false
	}
	if p := e.fault.Probability; p > 0 && p < 1 && e.rng.Float64() >= p {
		return false
	}
	e.hits++
	return true
}

// fits reports whether the fault selects this call.
func (e *entry) fits(call *Call) bool {
	f := &e.fault
	if !f.has(call.Operation) || f.Match != nil && !f.Match(call.Request) {
		return false
	}
	if f.Server == "" && f.LabelSelector == "" {
		return true
	}
	s, ok := call.Subject()
	return ok && (f.Server == "" || f.Server == s.Name || f.Server == s.ID) && e.labelSelector.Matches(s.Labels)
}

func (e *entry) over(now time.Time) bool {
	usedUp := e.fault.Count > 0 && e.hits >= e.fault.Count
	return usedUp || !e.endsAt.IsZero() && !now.Before(e.endsAt)
}

func (e *entry) delay() time.Duration {
	f := &e.fault
	return f.Delay + Spread(e.rng, f.DelayMax-f.Delay, f.DelayDistribution)
}

func (e *entry) view() Active {
	view := Active{ID: e.id, Fault: e.fault, Hits: e.hits, EndsAt: e.endsAt}
	view.Header = e.fault.Header.Clone()
	if e.fault.Count > 0 {
		view.Remaining = e.fault.Count - e.hits
	}
	if e.fault.After > 0 {
		view.StartsAt = e.startsAt
	}
	return view
}
