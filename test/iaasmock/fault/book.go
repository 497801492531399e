// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
)

// Book is the list of injected faults, also those yet to begin. Call Take once for each
// API call. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	entries []*entry
	added   int
}

// Add adds a valid fault. stream gives it its own random numbers.
func (b *Book) Add(f Fault, now time.Time, stream func(purpose string) *rand.Rand) Active {
	selector, _ := labels.Parse(f.LabelSelector) // validated
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added++
	added := &entry{
		fault: f, id: fmt.Sprintf("f%d", b.added), startsAt: now.Add(f.After),
		onlyDelays: !f.hasEffect(), labelSelector: selector, rng: stream(fmt.Sprintf("fault %d", b.added)),
	}
	if f.Rate > 0 {
		added.through = rate.NewLimiter(rate.Limit(f.Rate), max(f.Burst, 1))
	}
	if f.Duration > 0 {
		added.endsAt = added.startsAt.Add(f.Duration)
	}
	b.entries = append(b.entries, added)
	return added.view()
}

// Remove removes the fault with this ID and reports whether there was one.
func (b *Book) Remove(id string) bool {
	return b.remove(func(e *entry) bool { return e.id == id }) > 0
}

// Clear removes all faults.
func (b *Book) Clear() {
	b.remove(func(*entry) bool { return true })
}

func (b *Book) remove(these func(*entry) bool) (removed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.entries)
	b.entries = slices.DeleteFunc(b.entries, these)
	return before - len(b.entries)
}

// Active returns the faults that are active or have yet to begin, in the order they were
// added.
func (b *Book) Active(now time.Time) []Active {
	b.remove(func(e *entry) bool { return e.over(now) })
	b.mu.Lock()
	defer b.mu.Unlock()
	views := make([]Active, 0, len(b.entries))
	for _, entry := range b.entries {
		views = append(views, entry.view())
	}
	return views
}

// Incident is the combined effect of all faults that hit one call. Its Fault is zero if
// they only delay, or if none hits; use TotalDelay, not Delay.
type Incident struct {
	Fault
	// TotalDelay and TotalAnswerDelay add up the delays of all these faults.
	TotalDelay, TotalAnswerDelay time.Duration
	// Faults are the IDs of these faults.
	Faults []string
}

// Take decides which faults hit this call, and counts them.
func (b *Book) Take(call *Call) Incident {
	b.mu.Lock()
	defer b.mu.Unlock()
	var incident Incident
	decided := false
	for _, entry := range b.entries {
		if decided && !entry.onlyDelays || !entry.hit(call) {
			continue
		}
		incident.Faults = append(incident.Faults, entry.id)
		incident.TotalDelay += entry.delay()
		incident.TotalAnswerDelay += entry.fault.AnswerDelay
		if !entry.onlyDelays {
			incident.Fault, decided = entry.fault, true
		}
	}
	b.entries = slices.DeleteFunc(b.entries, func(e *entry) bool { return e.over(call.Now) })
	return incident
}
