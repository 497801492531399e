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
	// writers admits one write at a time to the limiter, so that at most one is ahead of a read. All
	// sessions share it.
	writers chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := l.waitTurn(request); err != nil {
		return nil, notSent(err)
	}
	return l.next.RoundTrip(request)
}

// waitTurn waits for the rate limit. The limiter serves in the order of arrival: without the
// writers' queue, hundreds of creations, changes and deletions would delay the reads of their
// outcomes.
func (l *limited) waitTurn(request *http.Request) error {
	if l.limiter == nil {
		return nil
	}
	ctx := request.Context()
	if request.Method != http.MethodGet {
		select {
		case l.writers <- struct{}{}:
			defer func() { <-l.writers }()
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API rate limit: %w", ctx.Err())
		}
	}
	if l.limiter.Wait(ctx) != nil { // fails at once if the turn would come too late
		return fmt.Errorf("waiting for the API rate limit: %w", cmp.Or(ctx.Err(), context.DeadlineExceeded))
	}
	return nil
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

const (
	// readsPerSecond limits the reads of a session. Thousands of sidecars share one backend; when more
	// callers wait, one list serves them all.
	readsPerSecond = 8
	// firstReadPause follows a read that is answered 429 or 401. It doubles with each consecutive one,
	// up to maxPause, and is multiplied by a random factor between 0.5 and 1.
	firstReadPause = time.Second
)

// Reads limits the reads of a session (GET requests, including lists): at most 8 start per second,
// evenly spaced, and none start during a pause after a 429 or 401. STACKIT limits calls by source
// address and sends no Retry-After: all clients behind one NAT share the limit, and reads must
// leave room for writes. A 401 counts because it causes a request for a new access token.
type Reads struct {
	clock   clock.Clock
	jitter  func() float64
	limiter *rate.Limiter
	// queue is held by the read whose turn is next.
	queue chan struct{}

	mu sync.Mutex
	// pausedAt and pausedUntil are the start and the end of the last pause. pause is its length before
	// the random factor; 0 after any other answer.
	pausedAt, pausedUntil time.Time
	pause                 time.Duration
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

// note starts a pause after a read that started at began and was answered 429 or 401. Of several
// reads in flight together, only the first does.
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
