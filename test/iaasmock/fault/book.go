// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Book is the list of injected faults, including faults that have not begun. Take must be called
// once for each API call. A Book is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	entries []*entry
	added   int
}

// Active is an injected fault that has not ended.
type Active struct {
	// ID identifies the fault for Book.Remove. It is unique in the Book.
	ID string
	Fault
	// Hits is the number of calls that the fault has hit.
	Hits int
}

// entry is an added fault with its own state.
type entry struct {
	Active
	// start is when the fault begins, end when it ends; a zero end means never.
	start, end time.Time
	// limits are those of Rate, by source address.
	limits map[string]*rate.Limiter
	// random returns a random number from 0 to 1.
	random func() float64
}

// Add adds a fault, which must be valid, and returns it with its ID. now is the time from
// which After counts; random returns a random number from 0 to 1.
func (b *Book) Add(f Fault, now time.Time, random func() float64) Active {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added++
	added := &entry{
		Active: Active{ID: fmt.Sprintf("f%d", b.added), Fault: f}, start: now.Add(f.After),
		random: random, limits: map[string]*rate.Limiter{},
	}
	if f.Duration > 0 {
		added.end = added.start.Add(f.Duration)
	}
	b.entries = append(b.entries, added)
	return added.Active
}

// Remove removes the fault with this ID, if there is one.
func (b *Book) Remove(id string) { b.remove(func(e *entry) bool { return e.ID == id }) }

// Clear removes all faults.
func (b *Book) Clear() { b.remove(func(*entry) bool { return true }) }

func (b *Book) remove(these func(*entry) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = slices.DeleteFunc(b.entries, these)
}

// Active returns the faults that have not ended, including faults that have not begun, in the order
// in which they were added.
func (b *Book) Active(now time.Time) []Active {
	b.mu.Lock()
	defer b.mu.Unlock()
	views := []Active{}
	for _, e := range b.entries {
		if !e.over(now) {
			views = append(views, e.Active)
		}
	}
	return views
}

// Incident is the combined effect of all faults that hit one call. Fault is the fault that applies;
// zero if the faults only delay, or if there are none. Its Delay is only part of TotalDelay.
type Incident struct {
	Fault
	// TotalDelay and TotalAnswerDelay are the sums of the delays of all faults that hit the call.
	TotalDelay, TotalAnswerDelay time.Duration
	// Faults are the IDs of all faults that hit the call.
	Faults []string
}

// Take returns the combined effect of the faults that hit the call. It counts their hits, and drops
// faults that have ended.
func (b *Book) Take(call *Call) Incident {
	b.mu.Lock()
	defer b.mu.Unlock()
	var incident Incident
	decided := false
	for _, e := range b.entries {
		onlyDelays := e.onlyDelays()
		if decided && !onlyDelays || !e.hit(call) {
			continue
		}
		incident.Faults = append(incident.Faults, e.ID)
		incident.TotalDelay += e.Delay
		incident.TotalAnswerDelay += e.AnswerDelay
		if !onlyDelays {
			incident.Fault, decided = e.Fault, true
		}
	}
	b.entries = slices.DeleteFunc(b.entries, func(e *entry) bool { return e.over(call.Now) })
	return incident
}

// hit decides whether the fault hits this call, and counts it if so.
func (e *entry) hit(call *Call) bool {
	if call.Now.Before(e.start) || e.over(call.Now) || !e.selects(call) {
		return false
	}
	if e.Rate > 0 && e.limitOf(call.Request).AllowN(call.Now, 1) {
		return false
	}
	if p := e.Probability; p > 0 && p < 1 && e.random() >= p {
		return false
	}
	e.Hits++
	return true
}

// limitOf returns the limit for the source address of a request.
func (e *entry) limitOf(request *http.Request) *rate.Limiter {
	source, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		source = request.RemoteAddr // an in-memory request has no port
	}
	limit, known := e.limits[source]
	if !known {
		limit = rate.NewLimiter(rate.Limit(e.Rate), max(e.Burst, 1))
		e.limits[source] = limit
	}
	return limit
}

func (e *entry) selects(call *Call) bool {
	if !e.has(call.Operation) || e.Match != nil && !e.Match(call.Request) {
		return false
	}
	if e.Server == "" && e.MachineType == "" && e.Zone == "" {
		return true
	}
	s, ok := call.Subject()
	return ok && (e.Server == "" || e.Server == s.Name || e.Server == s.ID) &&
		(e.MachineType == "" || e.MachineType == s.MachineType) && (e.Zone == "" || e.Zone == s.Zone)
}

func (e *entry) over(now time.Time) bool {
	usedUp := e.Count > 0 && e.Hits >= e.Count
	return usedUp || !e.end.IsZero() && !now.Before(e.end)
}

// Call describes a call of the API, with everything by which faults select calls.
type Call struct {
	// Operation is one of Operations, OperationToken or OperationUnknown.
	Operation string
	Request   *http.Request
	// Now is when the call began.
	Now time.Time
	// Subject returns the server that the call concerns, if there is one. It is called only if a
	// fault selects servers.
	Subject func() (Subject, bool)
}

// Subject is the server that a call concerns.
type Subject struct {
	// ID and Name are the server's; ID is "" for a server that the call would create.
	ID, Name string
	// MachineType and Zone are those in the request of CreateServer; "" for other calls.
	MachineType, Zone string
}
