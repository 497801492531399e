// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
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

// WaitForRead waits until one more read of a session may begin: reads are Session.Reads,
// nil for no limit. It fails only with the context's error.
func WaitForRead(ctx context.Context, clock clock.Clock, reads *rate.Limiter) error {
	if reads == nil {
		return ctx.Err()
	}
	now := clock.Now()
	return waitFor(ctx, clock, reads.ReserveN(now, 1).DelayFrom(now), waitReadLimit)
}
