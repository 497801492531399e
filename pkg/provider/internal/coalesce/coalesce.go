// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package coalesce lets many callers share one read.
//
// A Group reads one scope, such as the servers of a cluster. A caller hands in a Request:
// the value to read, and the earliest time to read it. The Group decides how to read it, by
// the rules of its Policy:
//
//   - No request gets the result of a read that began before the request came.
//   - A few due requests are read one by one, the longest waiting first. If more are due, one
//     list serves them, and every other request that it can. A due request that a list cannot
//     serve is read by itself.
//   - No read begins while a list is in flight, and few single reads are in flight at a
//     time. After Policy.Patience a slow read counts as failed and no longer delays others;
//     its result is still used.
//   - While lists fail, due requests are read one by one, and the next list comes after a
//     backoff. While single reads fail, even one due request makes a list. While both fail, one
//     read is tried after each backoff, and its error is the answer to all due requests.
//
// The package knows nothing of STACKIT.
package coalesce

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Policy says how a Group reads.
type Policy struct {
	// Singles is the greatest number of due requests that are read one by one: above it one
	// list serves them. It also limits the single reads in flight.
	Singles int
	// Window is the least time between the beginnings of two lists.
	Window time.Duration
	// Patience is for how long a read may hold up others.
	Patience time.Duration
	// Backoff is the time from a failed list to the next, and from one read to the next while
	// nothing works. It doubles with each failure in a row, up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Timeout is the deadline of a list, which belongs to no caller.
	Timeout time.Duration
	// Shared says whether an error holds however it is read. That of a list ends all requests.
	Shared func(error) bool
	// Turn waits until a read may begin. What to read is decided after it: requests that
	// come meanwhile make the next read a list.
	Turn func(context.Context) error
	// Recovered is deferred around each read, which runs in a goroutine of its own: it turns a
	// panic into the read's error.
	Recovered func(err *error)
}

// Request asks for one value of a scope. L is the type of a list, V that of the value.
type Request[L, V any] struct {
	// NotBefore is when the request becomes due; the zero time is at once.
	NotBefore time.Time
	// Single reads the value by itself. Nil means that only a list can serve the request.
	Single func(context.Context) (V, error)
	// Lists says that Single is a list, too, if a smaller one: whether such work says nothing about
	// other single reads, nor the reverse.
	Lists bool
	// Pick finds the value in a list that began then, and returns false if the list does not
	// show it. Nil means that no list can serve the request.
	Pick func(list L, began time.Time) (V, bool)
}

// Result is the value of a Request, or the error of its read.
type Result[V any] struct {
	Value V
	// Began is when the read began.
	Began time.Time
	Err   error
}

// Group shares the reads of one scope. Its goroutine runs while somebody waits.
type Group[L, V any] struct {
	policy Policy
	clock  clock.Clock
	list   func(context.Context) (L, error)

	mu sync.Mutex
	// waiting are the requests that were not served, in the order of their coming.
	waiting []*waiter[L, V]
	running bool
	changed chan struct{} // wakes the goroutine
	// listing is when the list began that holds up others; zero if none does.
	listing time.Time
	// nextList is when the next list may begin: the end of its window or of the backoff.
	nextList time.Time
	// failures are the lists that failed in a row, and the single reads while nothing works.
	failures int
	// singlesFail says that the last single read failed, smallListsFail that the last of those
	// did that is a list.
	singlesFail, smallListsFail bool
}

type waiter[L, V any] struct {
	Request[L, V]
	asked time.Time
	due   time.Time
	// holdsUntil is when the request's own read stops holding up others; zero unless it is
	// being read singly.
	holdsUntil time.Time
	singly     bool // no list serves the request
	// hangs says that its own read takes longer than Policy.Patience, err that it failed.
	hangs bool
	err   error
	start func(began time.Time)
	// result takes that of a single read and that of a list; the first one counts.
	result chan Result[V]
}

// needsList says that no read of its own can serve the request any more.
func (w *waiter[L, V]) needsList() bool { return w.Single == nil || w.hangs || w.err != nil }

// New returns a Group; without a list (nil) it reads one by one.
func New[L, V any](clock clock.Clock, policy Policy, list func(context.Context) (L, error)) *Group[L, V] {
	return &Group[L, V]{policy: policy, clock: clock, list: list, changed: make(chan struct{}, 1)}
}

// Read returns the result of a read that began after the call, or ctx's error.
func (g *Group[L, V]) Read(ctx context.Context, request Request[L, V]) Result[V] {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &waiter[L, V]{Request: request, singly: request.Pick == nil || g.list == nil, result: make(chan Result[V], 2)}
	w.start = func(began time.Time) {
		value, err := guarded(ctx, g.policy, request.Single)
		g.singleEnded(ctx, w, Result[V]{Value: value, Began: began, Err: err})
	}
	g.join(w)
	defer g.leave(w)
	select {
	case <-ctx.Done():
		return Result[V]{Began: g.clock.Now(), Err: fmt.Errorf("waiting for a read: %w", ctx.Err())}
	case result := <-w.result:
		return result
	}
}

// guarded makes a read that fails where it panics.
func guarded[T any](
	ctx context.Context, policy Policy, read func(context.Context) (T, error),
) (value T, err error) {
	defer policy.Recovered(&err)
	return read(ctx)
}

func (g *Group[L, V]) join(w *waiter[L, V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.asked = g.clock.Now()
	if w.due = w.NotBefore; w.due.Before(w.asked) {
		w.due = w.asked
	}
	g.waiting = append(g.waiting, w)
	if !g.running {
		g.running = true
		go g.run()
	}
	g.signal()
}

func (g *Group[L, V]) leave(w *waiter[L, V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waiter[L, V]) bool { return other == w })
	g.signal()
}

func (g *Group[L, V]) signal() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// run reads until nobody waits, and cancels reads that are still under way then.
func (g *Group[L, V]) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		g.mu.Lock()
		if len(g.waiting) == 0 {
			g.running, g.listing = false, time.Time{}
			g.mu.Unlock()
			return
		}
		_, _, pause := g.next(g.clock.Now())
		g.mu.Unlock()
		if pause <= 0 {
			_ = g.policy.Turn(ctx) // fails only with ctx
			g.startNext(ctx)
			continue
		}
		select {
		case <-g.changed:
		case <-g.clock.After(pause):
		}
	}
}

// startNext starts the next read; none if all changed while the Group waited for its turn.
func (g *Group[L, V]) startNext(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	switch list, single, _ := g.next(now); {
	case list:
		g.listing, g.nextList = now, now.Add(g.policy.Window)
		go g.readList(ctx, now)
	case single != nil:
		single.holdsUntil = now.Add(g.policy.Patience)
		go single.start(now)
	}
}

// next decides what to read: all by a list, one request, or nothing for a pause.
func (g *Group[L, V]) next(now time.Time) (list bool, single *waiter[L, V], pause time.Duration) {
	if !g.listing.IsZero() {
		if left := g.listing.Add(g.policy.Patience).Sub(now); left > 0 {
			return false, nil, left
		}
		g.listFailed(now, nil)
	}
	s := g.survey(now)
	full := s.inFlight >= g.policy.Singles
	if s.batch > g.policy.Singles || len(s.singles) < len(s.due) { // by a list, if one may begin
		if wait := g.nextList.Sub(now); wait <= 0 {
			list, single = g.afterBackoff(s, full)
		} else {
			s.pause = min(s.pause, wait)
			if g.failures == 0 { // what the next list serves waits for it
				s.singles = slices.DeleteFunc(s.singles, func(w *waiter[L, V]) bool { return !w.singly })
			}
		}
	}
	switch {
	case list || single != nil:
		return list, single, 0
	case len(s.singles) == 0 || full:
		return false, nil, s.pause
	default:
		return false, s.singles[0], 0
	}
}

// afterBackoff decides whether the next read is a list, or that of a stuck request: after a backoff
// the two ways take turns. Without a stuck request the longest waiting decides.
func (g *Group[L, V]) afterBackoff(s survey[L, V], full bool) (list bool, single *waiter[L, V]) {
	isReadSingly := !full && len(s.singles) > 0 && s.singles[0] == s.due[0] && s.due[0].singly
	switch isSinglesTurn := len(s.stuck) > 0 && (s.batch == 0 || g.failures%2 == 1); {
	case !isSinglesTurn:
		return s.batch > 0 && !isReadSingly, nil
	case s.inFlight == 0:
		return false, s.stuck[0]
	default:
		return false, nil
	}
}

// survey is what there is to read.
type survey[L, V any] struct {
	// due are the due requests, the longest waiting first. Of them, singles are those that can be
	// read singly now, stuck those that neither way serves; batch is how many a list may serve.
	due, singles, stuck []*waiter[L, V]
	batch               int
	// inFlight is how many single reads are, pause how long all that stays so.
	inFlight int
	pause    time.Duration
}

func (g *Group[L, V]) survey(now time.Time) survey[L, V] {
	s := survey[L, V]{pause: math.MaxInt64} // until something changes
	for _, w := range g.waiting {
		if !w.holdsUntil.IsZero() && !w.holdsUntil.After(now) && !w.hangs {
			w.hangs = true
			g.singleFailed(w, now)
		}
		switch {
		case w.holdsUntil.After(now):
			s.inFlight++
			s.pause = min(s.pause, w.holdsUntil.Sub(now))
		case w.hangs && w.singly: // only its own read can serve it
		case w.due.After(now):
			s.pause = min(s.pause, w.due.Sub(now))
		default:
			s.due = append(s.due, w)
			if !w.singly {
				s.batch++
			}
		}
	}
	slices.SortStableFunc(s.due, func(a, b *waiter[L, V]) int { return a.due.Compare(b.due) })
	for _, w := range s.due {
		switch {
		case w.needsList():
		case g.isStuck(w):
			s.stuck = append(s.stuck, w)
		case w.singly || !*g.fails(w):
			s.singles = append(s.singles, w)
		}
	}
	return s
}

// singleEnded answers the request with what its own read returned. If that failed, the next list
// may still serve it.
func (g *Group[L, V]) singleEnded(ctx context.Context, w *waiter[L, V], result Result[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.signal()
	switch {
	case result.Err == nil:
		*g.fails(w) = false
	case ctx.Err() != nil, g.policy.Shared(result.Err):
	default:
		if !w.hangs {
			g.singleFailed(w, g.clock.Now())
		}
		w.holdsUntil, w.err = time.Time{}, result.Err
		switch {
		case g.isStuck(w):
			g.giveUp(result.Began, result.Err)
		case !w.singly:
			return
		}
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waiter[L, V]) bool { return other == w })
	w.result <- result
}

// fails says whether single reads such as the request's fail.
func (g *Group[L, V]) fails(w *waiter[L, V]) *bool {
	if w.Lists {
		return &g.smallListsFail
	}
	return &g.singlesFail
}

// isStuck says that neither lists nor single reads such as the request's work.
func (g *Group[L, V]) isStuck(w *waiter[L, V]) bool { return g.failures > 0 && *g.fails(w) }

// singleFailed notes that a request's own read failed, or hangs.
func (g *Group[L, V]) singleFailed(w *waiter[L, V], now time.Time) {
	switch {
	case g.list != nil && g.failures == 0: // lists work
	case !*g.fails(w): // lists may have failed for long, this has not
		g.failures = 0
		g.backOff(now)
	case !g.nextList.After(now): // else it began before the backoff
		g.backOff(now)
	}
	*g.fails(w) = true
}

func (g *Group[L, V]) backOff(now time.Time) {
	backoff := g.policy.Backoff << min(g.failures, 16) // more would overflow
	g.nextList = now.Add(min(backoff, g.policy.MaxBackoff))
	g.failures++
}

func (g *Group[L, V]) readList(ctx context.Context, began time.Time) {
	limited, cancel := context.WithTimeout(ctx, g.policy.Timeout)
	defer cancel()
	list, err := guarded(limited, g.policy, g.list)
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return // nobody waits
	}
	defer g.signal()
	holdsUp := g.listing.Equal(began)
	switch {
	case err == nil:
		g.failures = 0
	case g.policy.Shared(err):
	case holdsUp:
		g.listFailed(g.clock.Now(), err)
		return
	default: // it counted as failed when it began to hold up nobody
		g.giveUp(began, err)
		return
	}
	if holdsUp {
		g.listing = time.Time{}
	}
	g.serveAll(list, began, err)
}

// serveAll answers the requests that a list, or an error that is everybody's, answers. Other
// due requests are read singly.
func (g *Group[L, V]) serveAll(list L, began time.Time, err error) {
	now := g.clock.Now()
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter[L, V]) bool {
		if w.asked.After(began) {
			return false
		}
		result, served := Result[V]{Began: began, Err: err}, err != nil
		if !served && w.Pick != nil {
			result.Value, served = w.Pick(list, began)
		}
		switch {
		case served:
			w.result <- result
		case w.err != nil: // neither way shows it
			w.result <- Result[V]{Began: began, Err: w.err}
			return true
		case !w.due.After(now) && w.Single != nil:
			w.singly = true
		}
		return served
	})
}

// listFailed puts off the next list. err is its error; nil for one that takes too long.
func (g *Group[L, V]) listFailed(now time.Time, err error) {
	began := g.listing
	g.listing = time.Time{}
	g.backOff(now)
	g.giveUp(began, err)
}

// giveUp answers the requests for which neither way is left after a read that began then and
// ended with the error: those whose own reads failed before, those that need a list, and all
// due ones that are stuck.
func (g *Group[L, V]) giveUp(began time.Time, err error) {
	now := g.clock.Now()
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter[L, V]) bool {
		isDue := !w.due.After(now) && w.holdsUntil.IsZero()
		switch {
		case w.err != nil:
			w.result <- Result[V]{Began: began, Err: w.err}
		case err != nil && isDue && !w.asked.After(began) && (w.Single == nil || g.isStuck(w)):
			w.result <- Result[V]{Began: began, Err: err}
		default:
			return false
		}
		return true
	})
}
