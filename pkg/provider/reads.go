// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// shareFrom is the number of calls of a cluster from which on lists answer them all: for fewer, a
	// GET each is cheaper.
	shareFrom = 3
	// maxGETs limits the GETs of servers in flight in a session.
	maxGETs = 4
	// listInterval is the minimum time between the starts of two shared lists, projectInterval that of
	// lists of the project's servers, which are large.
	listInterval, projectInterval = time.Second, 5 * time.Second
	// maxBackoff limits the time from a failed read to the next.
	maxBackoff = 30 * time.Second
	// readTimeout limits a read, including its retries: the call goes on with the next.
	readTimeout = 20 * time.Second
	// readerLifetime is how long an unused shared list is kept.
	readerLifetime = 10 * time.Minute
)

// readers are the reads that the calls of a session share in a region.
type readers struct {
	*process
	place  place
	client *StackitClient
	// turn waits for the session's limit of reads.
	turn    func(context.Context) error
	servers *recent.Map[string, *sharedList[Server]]
	nics    *recent.Map[string, *sharedList[NIC]]
	// gets is held by each GET of a server in flight, failedGETs delays the next ones.
	gets       chan struct{}
	failedGETs backoff
	// started counts the waits for POSTs and DELETEs.
	started atomic.Int64
}

// place is the location of a request's servers.
type place struct{ endpoint, project, region string }

func newReaders(session *spi.Session, region string, process *process) *readers {
	return &readers{
		process: process, client: NewClient(session, region), place: place{session.Endpoint, session.ProjectID, region},
		turn:    session.Reads.Wait,
		gets:    make(chan struct{}, maxGETs),
		servers: recent.New[string, *sharedList[Server]](process.clock, readerLifetime),
		nics:    recent.New[string, *sharedList[NIC]](process.clock, readerLifetime),
	}
}

// serversOf returns the shared list of the servers with these labels; nil means the whole project.
func (r *readers) serversOf(labels map[string]string) *sharedList[Server] {
	return r.servers.Get(labelSelector(labels), func() *sharedList[Server] {
		interval := listInterval
		if labels == nil {
			interval = projectInterval
		}
		return newSharedList(r, interval, func(ctx context.Context) ([]Server, error) { return r.listServers(ctx, labels) })
	})
}

// nicsIn returns the shared list of a network's NICs.
func (r *readers) nicsIn(networkID string) *sharedList[NIC] {
	return r.nics.Get(networkID, func() *sharedList[NIC] {
		return newSharedList(r, listInterval, func(ctx context.Context) ([]NIC, error) {
			return r.client.ListNetworkNICs(ctx, networkID)
		})
	})
}

// listServers lists servers without DELETED ones, which do not exist.
func (r *readers) listServers(ctx context.Context, labels map[string]string) ([]Server, error) {
	servers, err := r.client.ListServers(ctx, labels)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(servers, func(server Server) bool { return server.Status == statusDeleted }), nil
}

// read makes a caller's own read when its turn has come.
func (r *readers) read(ctx context.Context, read func(context.Context) error) (began time.Time, err error) {
	if err := r.turn(ctx); err != nil {
		return r.clock.Now(), err
	}
	began = r.clock.Now()
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err = read(limited); ctx.Err() == nil {
		err = unanswered(err)
	}
	return began, err
}

// getServer reads one server when its turn has come. After a failed GET all of the session's wait, so
// that an outage is not asked for each of its servers.
func (r *readers) getServer(ctx context.Context, id string) (server *Server, began time.Time, err error) {
	select {
	case r.gets <- struct{}{}:
		defer func() { <-r.gets }()
	case <-ctx.Done():
		return nil, r.clock.Now(), fmt.Errorf("waiting for a read: %w", ctx.Err())
	}
	if err := spi.Sleep(ctx, r.clock, r.failedGETs.due().Sub(r.clock.Now())); err != nil {
		return nil, r.clock.Now(), fmt.Errorf("waiting for a read: %w", err)
	}
	began, err = r.read(ctx, func(ctx context.Context) (err error) {
		server, err = r.client.GetServer(ctx, id)
		return err
	})
	if ctx.Err() == nil {
		r.failedGETs.note(r.clock.Now(), err != nil && !isServerNotFound(err))
	}
	return server, began, err
}

// backoff delays the attempts at something that fails: 1, 2, 4 … 30 s after the last one, each
// multiplied by a random factor between 0.5 and 1.
type backoff struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// note notes the outcome of an attempt that has just ended.
func (b *backoff) note(now time.Time, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !failed {
		b.failures, b.until = 0, time.Time{}
		return
	}
	longest := min(time.Second<<min(b.failures, 10), maxBackoff)
	b.failures++
	b.until = now.Add(time.Duration(float64(longest) * (0.5 + rand.Float64()/2))) //nolint:gosec // a pause, not a secret
}

// due returns when the next attempt may begin; the zero time after a success.
func (b *backoff) due() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// spread returns a fraction of a time that varies from wait to wait, so that servers which are
// created together are not all read at once. The golden section spreads any number evenly.
func (r *readers) spread(within time.Duration) time.Duration {
	return within * time.Duration((r.started.Add(1)-1)*618%1000) / 1000
}

// list is the result of a LIST.
type list[T any] struct {
	items []T
	began time.Time
	err   error
}

// sharedList makes one LIST at a time for all callers that wait for one: each gets the first that
// begins after its request.
type sharedList[T any] struct {
	readers  *readers
	interval time.Duration
	read     func(context.Context) ([]T, error)
	// users counts the calls in progress that may use the list.
	users atomic.Int64
	// running is held by the LIST that is next. failed delays the next one after a failure.
	running chan struct{}
	failed  backoff

	mu   sync.Mutex
	next *pendingList[T]
	// notBefore is when the interval allows the next LIST.
	notBefore time.Time
}

// pendingList is a LIST that has not begun. sooner wakes its goroutine after due has changed, done is
// closed once the list is complete.
type pendingList[T any] struct {
	list[T]
	due          time.Time
	sooner, done chan struct{}
}

func newSharedList[T any](r *readers, interval time.Duration, read func(context.Context) ([]T, error)) *sharedList[T] {
	return &sharedList[T]{readers: r, interval: interval, read: read, running: make(chan struct{}, 1)}
}

// isFailing reports whether the last LIST failed.
func (s *sharedList[T]) isFailing() bool { return !s.failed.due().IsZero() }

// get returns the first list that begins after the call: at due, or as soon as another caller needs
// one.
func (s *sharedList[T]) get(ctx context.Context, due time.Time) *list[T] {
	pending := s.request(due)
	select {
	case <-pending.done:
		return &pending.list
	case <-ctx.Done():
		return &list[T]{began: s.readers.clock.Now(), err: fmt.Errorf("waiting for a list: %w", ctx.Err())}
	}
}

// request asks for a list that begins at due or earlier, but after the call.
func (s *sharedList[T]) request(due time.Time) *pendingList[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := s.next
	if pending == nil {
		pending = &pendingList[T]{due: due, sooner: make(chan struct{}, 1), done: make(chan struct{})}
		s.next = pending
		go s.run(pending)
	}
	if due.Before(pending.due) {
		pending.due = due
		select {
		case pending.sooner <- struct{}{}:
		default:
		}
	}
	return pending
}

// run makes the LIST when it is due.
func (s *sharedList[T]) run(pending *pendingList[T]) {
	defer close(pending.done)
	s.running <- struct{}{}
	defer func() { <-s.running }()
	for pause := s.pause(pending); pause > 0; pause = s.pause(pending) {
		select {
		case <-pending.sooner:
		case <-s.readers.clock.After(pause):
		}
	}
	_ = s.readers.turn(context.Background()) // fails only with its context
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	s.mu.Lock()
	pending.began = s.readers.clock.Now()
	s.next, s.notBefore = nil, pending.began.Add(s.interval)
	s.mu.Unlock()
	func() {
		defer recovered(&pending.err)
		pending.items, pending.err = s.read(ctx)
	}()
	pending.err = unanswered(pending.err)
	s.failed.note(s.readers.clock.Now(), pending.err != nil)
}

func (s *sharedList[T]) pause(pending *pendingList[T]) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return later(pending.due, later(s.notBefore, s.failed.due())).Sub(s.readers.clock.Now())
}

// noAnswer is the cause of a read that exceeded readTimeout.
type noAnswer struct{}

func (noAnswer) Error() string { return fmt.Sprintf("no answer within %s", readTimeout) }

// unanswered replaces the deadline error of a read that exceeded readTimeout: the caller's own time is
// not up. A read that waited for an access token was not sent to the API.
func unanswered(err error) error {
	var api *APIError
	var token *spi.TokenError
	if errors.As(err, &api) && errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &token) {
		return &APIError{Call: api.Call, Err: noAnswer{}}
	}
	return err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
