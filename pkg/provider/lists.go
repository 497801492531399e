// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Limits of shared reads. The reads per second are readsPerSecond in pkg/spi/limits.go, the retries
// of a read in pkg/spi/retry.go.
const (
	// listInterval is the minimum time between the starts of two lists of a scope; projectInterval is
	// the same for lists of the project's servers or volumes, which are large.
	listInterval, projectInterval = 250 * time.Millisecond, 5 * time.Second
	// maxListBackoff limits the backoff after failed lists: 1, 2, 4 … 30 s.
	maxListBackoff = 30 * time.Second
	// maxSingles limits the reads in flight that replace a failed list.
	maxSingles = 4
	// tooLargeFor is how long lists of the project must fail until lists by the machine label replace
	// them. An outage must not cause this: it would hide a server from before there were labels.
	tooLargeFor = 10 * time.Minute
	// readTimeout limits a shared list, or a GET in its place, including retries: then another way is
	// tried.
	readTimeout = 20 * time.Second
	// callTimeout is the deadline of calls that do not wait.
	callTimeout = 2 * time.Minute
	// readerLifetime is how long the lister of a scope is kept without a read.
	readerLifetime = 10 * time.Minute
)

// list is a finished LIST.
type list[T any] struct {
	items        []T
	began, ended time.Time
	err          error
	// isSingle reports whether the caller must read by itself instead (lister.single).
	isSingle bool
}

// lister shares the LISTs of one scope, such as the servers of a cluster. Each caller gets a list
// that began after its request. One list is in flight at a time, and answers all waiting callers,
// due or not; a failed list answers only the due callers that cannot read by themselves.
//
// A caller that can read by itself must do so if no other caller waits or reads, or while lists
// fail, maxSingles at a time. If such reads fail, too, a list and one of them take turns.
type lister[T any] struct {
	readers  *readers
	interval time.Duration
	read     func(context.Context) ([]T, error)

	mu      sync.Mutex
	waiting []*waiter[T]
	// running reports whether the goroutine that answers waiting callers runs; changed wakes it.
	running bool
	changed chan struct{}
	lists   schedule
	// singles counts the single reads in flight; fails reports for each ability whether its last one failed for a
	// reason that others may share (isOutage).
	singles int
	fails   [abilities]bool
}

// schedule decides when the next list may begin: after the interval, or a backoff.
type schedule struct {
	notBefore time.Time
	// failures counts consecutive failed lists, the first one at since; err is the last one's error.
	failures int
	since    time.Time
	err      error
}

// waiter is a caller of lister.next.
type waiter[T any] struct {
	due     time.Time
	ability ability
	hasLeft bool
	answer  chan *list[T]
}

// ability is what a caller can read by itself.
type ability int

const (
	// listsOnly is for callers that cannot read by themselves.
	listsOnly ability = iota
	// ownList is for callers that can read a smaller list.
	ownList
	// ownGet is for callers that can read their object by its ID.
	ownGet
	abilities
)

func newLister[T any](r *readers, interval time.Duration, read func(context.Context) ([]T, error)) *lister[T] {
	return &lister[T]{readers: r, interval: interval, read: read, changed: make(chan struct{}, 1)}
}

// next returns the first list that began after the call. It is made at due (the zero time means
// now), or as soon as the interval or a backoff allows.
func (l *lister[T]) next(ctx context.Context, due time.Time, ability ability) *list[T] {
	mine := l.join(due, ability)
	defer l.leave(mine)
	select {
	case answer := <-mine.answer:
		return answer
	case <-ctx.Done():
		return &list[T]{err: fmt.Errorf("waiting for a read: %w", ctx.Err())}
	}
}

func (l *lister[T]) join(due time.Time, ability ability) *waiter[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := &waiter[T]{due: later(due, l.readers.clock.Now()), ability: ability, answer: make(chan *list[T], 1)}
	l.waiting = append(l.waiting, mine)
	if !l.running {
		l.running = true
		go l.run()
	}
	l.wake()
	return mine
}

func (l *lister[T]) leave(mine *waiter[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine.hasLeft = true
	select {
	case unread := <-mine.answer:
		if unread.isSingle {
			l.singles--
		}
	default:
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter[T]) bool { return other == mine })
	l.wake()
}

func (l *lister[T]) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// single makes a caller's own read when its turn has come, and notes a failure for the others.
// answer is the result of next; nil if the caller reads by itself anyway.
func (l *lister[T]) single(
	ctx context.Context, answer *list[T], ability ability, read func(context.Context) error,
) (err error) {
	if answer == nil || !answer.isSingle {
		l.mu.Lock()
		l.singles++
		l.mu.Unlock()
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.singles--
		if ctx.Err() == nil && !isSessionWide(err) {
			l.fails[ability] = isOutage(err)
		}
		l.wake()
	}()
	if err = l.readers.turn(ctx); err != nil {
		return err
	}
	return read(ctx)
}

// run answers the waiting callers until there are none.
func (l *lister[T]) run() {
	for {
		l.mu.Lock()
		now := l.readers.clock.Now()
		l.answerSingles(now)
		if len(l.waiting) == 0 {
			l.running = false
			l.mu.Unlock()
			return
		}
		pause := l.pause(now)
		l.mu.Unlock()
		if pause <= 0 {
			l.makeList()
			continue
		}
		select {
		case <-l.changed:
		case <-l.readers.clock.After(pause):
		}
	}
}

// answerSingles answers the callers that must read by themselves, and sorts the others by due time.
func (l *lister[T]) answerSingles(now time.Time) {
	isAlone := len(l.waiting) == 1 && l.singles == 0
	isOff := l.lists.isOff(now)
	isProbing := !isOff && l.lists.failures%2 == 1
	slices.SortStableFunc(l.waiting, func(a, b *waiter[T]) int { return a.due.Compare(b.due) })
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter[T]) bool {
		isDue, canRead := !w.due.After(now), w.ability != listsOnly
		switch fails := l.fails[w.ability]; {
		case !isDue, !canRead:
			return false
		case !fails && (isAlone || isOff && l.singles < maxSingles):
		case fails && isProbing:
			isProbing = false
			l.lists.failed(l.lists.err, now)
		default:
			return false
		}
		l.singles++
		w.answer <- &list[T]{isSingle: true}
		return true
	})
}

// pause returns how long to wait, unless something changes, until the next step: 0 or less if a
// list is due.
func (l *lister[T]) pause(now time.Time) time.Duration {
	pause := later(l.waiting[0].due, l.lists.notBefore).Sub(now)
	for _, w := range l.waiting { // a single read need not wait for a delayed list
		if w.due.After(now) && w.ability != listsOnly && !l.fails[w.ability] {
			return min(pause, w.due.Sub(now))
		}
	}
	return pause
}

// makeList makes a list for all waiting callers when its turn has come.
func (l *lister[T]) makeList() {
	_ = l.readers.turn(context.Background()) // fails only with a context
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	l.mu.Lock()
	made := &list[T]{began: l.readers.clock.Now()}
	batch := l.waiting
	l.waiting, l.lists.notBefore = nil, made.began.Add(l.interval)
	l.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	func() {
		defer recovered(&made.err)
		made.items, made.err = l.read(ctx)
		made.err = unanswered(made.err)
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	made.ended = l.readers.clock.Now()
	switch {
	case made.err == nil:
		l.lists.failures = 0
	case !isSessionWide(made.err):
		l.lists.failed(made.err, made.ended)
	}
	l.answer(batch, made)
}

// failed delays the next list.
func (s *schedule) failed(err error, now time.Time) {
	s.notBefore = now.Add(min(time.Second<<min(s.failures, 10), maxListBackoff))
	if s.failures++; s.failures == 1 {
		s.since = now
	}
	s.err = err
}

// isOff reports whether the next list is delayed because the last one failed.
func (s *schedule) isOff(now time.Time) bool { return s.failures > 0 && now.Before(s.notBefore) }

// isTooLarge reports whether lists have failed for tooLargeFor, the last one because of its
// content; isOff whether the next one is delayed.
func (l *lister[T]) isTooLarge() (tooLarge, isOff bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.readers.clock.Now()
	hasLasted := l.lists.failures > 0 && now.Sub(l.lists.since) >= tooLargeFor
	return hasLasted && isTooLarge(l.lists.err), l.lists.isOff(now)
}

// answer returns the list to the callers that waited for it. After a failed one, callers that are
// not due, or can read by themselves, keep waiting.
func (l *lister[T]) answer(batch []*waiter[T], made *list[T]) {
	isOff := made.err != nil && !isSessionWide(made.err)
	for _, w := range batch {
		switch {
		case w.hasLeft:
		case isOff && (w.due.After(made.ended) || w.ability != listsOnly && !l.fails[w.ability]):
			l.waiting = append(l.waiting, w)
		default:
			w.answer <- made
		}
	}
}

// isSessionWide reports whether an API call failed for a reason that affects all others of the
// session: refused credentials, or too many calls, in any form.
func isSessionWide(err error) bool {
	var api *APIError
	return spi.IsRefused(err) || errors.As(err, &api) &&
		(api.StatusCode == http.StatusUnauthorized || api.StatusCode == http.StatusTooManyRequests)
}

// noAnswer is the cause of a read that exceeded readTimeout.
type noAnswer struct{}

func (noAnswer) Error() string { return fmt.Sprintf("no answer within %s", readTimeout) }

// Timeout implements net.Error.
func (noAnswer) Timeout() bool { return true }

// unanswered replaces the deadline error of a read that exceeded readTimeout: the caller's own time
// is not up. A read that waited for an access token was not sent to the API.
func unanswered(err error) error {
	var api *APIError
	var token *spi.TokenError
	if errors.As(err, &api) && errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &token) {
		return &APIError{Call: api.Call, Err: noAnswer{}}
	}
	return err
}

// isTooLarge reports whether a list failed because of its content, so that a smaller one may work:
// the API or its gateway cannot answer it, or not in time, or a server in it cannot be decoded, for
// which the SDK refuses the whole list.
func isTooLarge(err error) bool {
	var api *APIError
	var timeout interface{ Timeout() bool }
	return errors.As(err, &api) &&
		(api.StatusCode == http.StatusRequestEntityTooLarge || api.StatusCode == http.StatusGatewayTimeout ||
			errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, errUnreadable) || errors.Is(err, spi.ErrTooLarge))
}

// isOutage reports whether a single read failed for a reason that others of its kind may share: not because
// of its server or the server's content.
func isOutage(err error) bool {
	return err != nil && !isServerNotFound(err) && !errors.Is(err, errUnreadable)
}

// readers are the shared reads of a session in a region.
type readers struct {
	*process
	place  place
	client StackitClient
	turn   func(context.Context) error
	// waits counts the waits for POSTs and DELETEs to take effect.
	waits   atomic.Int64
	servers *recent.Map[string, *lister[Server]]
	nics    *recent.Map[string, *lister[NIC]]
	volumes *lister[Volume]
}

func newReaders(session *spi.Session, region string, process *process) *readers {
	client := &sdkClient{api: session.API, projectID: session.ProjectID, region: region}
	r := &readers{
		process: process, client: client, place: place{session.Endpoint, session.ProjectID, region},
		turn:    session.Reads.Wait,
		servers: recent.New[string, *lister[Server]](process.clock, readerLifetime),
		nics:    recent.New[string, *lister[NIC]](process.clock, readerLifetime),
	}
	r.volumes = newLister(r, projectInterval, client.ListVolumes)
	return r
}

// spread returns a fraction of a time that varies from call to call: servers that are created
// together are read one after the other, and each profits from the lists of all. The golden section
// spreads any number of them evenly.
func (r *readers) spread(within time.Duration) time.Duration {
	return within * time.Duration((r.waits.Add(1)-1)*618%1000) / 1000
}

// serversOf returns the lister of the servers with these labels; nil means the whole project.
func (r *readers) serversOf(labels map[string]string) *lister[Server] {
	return r.servers.Get(labelSelector(labels), func() *lister[Server] {
		interval := listInterval
		if labels == nil {
			interval = projectInterval
		}
		return newLister(r, interval, func(ctx context.Context) ([]Server, error) { return r.listServers(ctx, labels) })
	})
}

func (r *readers) listServers(ctx context.Context, labels map[string]string) ([]Server, error) {
	servers, err := r.client.ListServers(ctx, labels)
	if err != nil {
		return nil, err
	}
	r.meters.listed(r.place.project, r.place.region, labels, servers)
	servers = existing(servers)
	r.memory.saw(r.place, servers...)
	return servers, nil
}

// nicsIn returns the lister of a network's NICs.
func (r *readers) nicsIn(networkID string) *lister[NIC] {
	return r.nics.Get(networkID, func() *lister[NIC] {
		return newLister(r, listInterval, func(ctx context.Context) ([]NIC, error) {
			return r.client.ListNetworkNICs(ctx, networkID)
		})
	})
}

// existing drops duplicate servers, and DELETED ones, which do not exist.
func existing(servers []Server) []Server {
	seen := make(map[string]bool, len(servers))
	return slices.DeleteFunc(servers, func(server Server) bool {
		isAgain := seen[server.ID] && server.ID != ""
		seen[server.ID] = true
		return isAgain || server.Status == statusDeleted
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
