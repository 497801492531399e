// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// limited lets an attempt wait for the process's limit of API calls.
type limited struct {
	next http.RoundTripper
	// limiter is nil without a limit.
	limiter *rate.Limiter
	clock   clock.PassiveClock
	// writers lets one write at a time wait for the limiter, so that at most one is
	// ahead of a read. All sessions share it.
	writers chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := l.waitTurn(request); err != nil {
		return nil, notSent(err)
	}
	return l.next.RoundTrip(request)
}

// waitTurn waits for the rate limit. The limiter serves in the order of arrival:
// without the writers' queue, hundreds of servers to create, change or delete would
// keep the reads waiting that tell what became of the others.
func (l *limited) waitTurn(request *http.Request) error {
	if l.limiter == nil {
		return nil
	}
	start := l.clock.Now()
	defer func() { callWaits.WithLabelValues(string(waitRateLimit)).Add(l.clock.Since(start).Seconds()) }()
	ctx := request.Context()
	if request.Method != http.MethodGet {
		select {
		case l.writers <- struct{}{}:
			defer func() { <-l.writers }()
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API rate limit: %w", ctx.Err())
		}
	}
	if l.limiter.Wait(ctx) != nil { // at once, where it would be too late
		return fmt.Errorf("waiting for the API rate limit: %w", cmp.Or(ctx.Err(), context.DeadlineExceeded))
	}
	return nil
}

// Sleep waits, or returns the context's error if that ends first.
func Sleep(ctx context.Context, clock clock.Clock, duration time.Duration) error {
	return sleepUntil(ctx, clock, duration, nil)
}

// sleepUntil is Sleep, but waits no longer once woken is closed.
func sleepUntil(ctx context.Context, clock clock.Clock, duration time.Duration, woken <-chan struct{}) error {
	if duration <= 0 {
		return ctx.Err()
	}
	timer := clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	case <-woken:
		return nil
	}
}

// waitFor sleeps as Sleep does, and adds the time to the reason's.
func waitFor(ctx context.Context, clock clock.Clock, duration time.Duration, reason waitReason) error {
	start := clock.Now()
	err := Sleep(ctx, clock, duration)
	callWaits.WithLabelValues(string(reason)).Add(clock.Since(start).Seconds())
	return err
}

const (
	// readsPerSecond is how many reads of a session begin. API calls are the scarce resource: thousands of sidecars share
	// one backend. With more waiting, one list serves them all.
	readsPerSecond = 8
	// firstReadPause follows a read that is answered 429 or 401; each that follows without another answer between is twice as
	// long, up to maxPause. Each is multiplied by a random factor between 0.5 and 1.
	firstReadPause = time.Second
)

// Reads bounds how many reads of a session (GET requests, lists included) begin: 8 a second, one after the other, and
// none for a while after one that was answered 429, or 401: both hold for all. STACKIT limits by source address, without
// a Retry-After: whatever is behind one NAT shares the limit, and reads must leave room in it for the writes that they
// wait for. Each 401 costs a request for an access token.
type Reads struct {
	clock   clock.Clock
	jitter  func() float64
	limiter *rate.Limiter
	// queue has the reads that wait, in the order in which they came.
	queue chan struct{}

	mu sync.Mutex
	// pausedAt is when the last pause began, pausedUntil its end, pause its length before the random factor; 0 after any
	// other answer.
	pausedAt, pausedUntil time.Time
	pause                 time.Duration
}

func newReads(clock clock.Clock, jitter func() float64) *Reads {
	return &Reads{clock: clock, jitter: jitter, limiter: rate.NewLimiter(readsPerSecond, 1), queue: make(chan struct{}, 1)}
}

// Wait waits until one more read may begin. It fails only with the context's error.
func (r *Reads) Wait(ctx context.Context) error {
	if r == nil {
		return ctx.Err()
	}
	start := r.clock.Now()
	defer func() { callWaits.WithLabelValues(string(waitReadLimit)).Add(r.clock.Since(start).Seconds()) }()
	select {
	case r.queue <- struct{}{}:
		defer func() { <-r.queue }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		now := r.clock.Now()
		if pause := r.paused(now); pause > 0 {
			if err := Sleep(ctx, r.clock, pause); err != nil {
				return err
			}
			continue
		}
		turn := r.limiter.ReserveN(now, 1).DelayFrom(now)
		if err := Sleep(ctx, r.clock, turn); err != nil || r.paused(r.clock.Now()) <= 0 {
			return err
		}
	}
}

func (r *Reads) paused(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pausedUntil.Sub(now)
}

// note begins a pause after a read that began then and was answered 429 or 401. Of several that were under way together only
// the first does.
func (r *Reads) note(began time.Time, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case status != http.StatusTooManyRequests && status != http.StatusUnauthorized:
		r.pause = 0
	case !began.Before(r.pausedAt):
		r.pause = min(max(2*r.pause, firstReadPause), maxPause)
		r.pausedAt = r.clock.Now()
		r.pausedUntil = r.pausedAt.Add(time.Duration(float64(r.pause) * (0.5 + r.jitter()/2)))
	}
}
