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

// limited holds an attempt until the process's limit of API calls allows it.
type limited struct {
	next http.RoundTripper
	// limiter limits the process's API calls; nil means no limit.
	limiter *rate.Limiter
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.limiter == nil {
		return l.next.RoundTrip(request)
	}
	ctx := request.Context()
	if l.limiter.Wait(ctx) != nil { // fails at once if the turn would come too late
		return nil, notSent(fmt.Errorf("waiting for the API rate limit: %w", cmp.Or(ctx.Err(), context.DeadlineExceeded)))
	}
	return l.next.RoundTrip(request)
}

// Sleep waits for the duration. If the context ends first, Sleep returns the context's error.
func Sleep(ctx context.Context, clock clock.Clock, duration time.Duration) error {
	return sleepUntil(ctx, clock, duration, nil)
}

// sleepUntil is a Sleep that ends early when woken is closed.
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

// readsPerSecond limits the reads of a session. Thousands of sidecars share one backend; when more
// callers wait, one list serves them all.
const readsPerSecond = 8

// Reads limits the reads of a session (GET requests, including lists): at most 8 start per second,
// evenly spaced, and none start during a pause after a 429 or 401, or a Retry-After. STACKIT limits
// calls by source address and sends no Retry-After: all clients behind one NAT share the limit, and
// reads must leave room for writes. A 401 counts because it causes a request for a new access token.
type Reads struct {
	clock   clock.Clock
	jitter  func() float64
	limiter *rate.Limiter
	// queue is held by the read whose turn is next.
	queue chan struct{}

	mu sync.Mutex
	pause
}

func newReads(clock clock.Clock, jitter func() float64) *Reads {
	return &Reads{clock: clock, jitter: jitter, limiter: rate.NewLimiter(readsPerSecond, 1), queue: make(chan struct{}, 1)}
}

// Wait waits until the next read may start. It fails only if ctx ends, with the context's error. On
// a nil Reads it does not wait.
func (r *Reads) Wait(ctx context.Context) error {
	if r == nil {
		return ctx.Err()
	}
	select {
	case r.queue <- struct{}{}:
		defer func() { <-r.queue }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		if err := Sleep(ctx, r.clock, r.paused()); err != nil {
			return err
		}
		now := r.clock.Now()
		err := Sleep(ctx, r.clock, r.limiter.ReserveN(now, 1).DelayFrom(now))
		if err != nil || r.paused() <= 0 { // a pause may have begun meanwhile
			return err
		}
	}
}

// paused returns how long the pause goes on; zero or less without one.
func (r *Reads) paused() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until.Sub(r.clock.Now())
}

// note starts or lengthens the pause by the answer to a read that started at began; nil if there was
// none.
func (r *Reads) note(began time.Time, response *http.Response) {
	if response == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusUnauthorized:
		r.lengthen(began, now, r.jitter())
	default:
		r.length = 0
	}
	r.holdFor(retryAfter(response), now, r.jitter())
}
