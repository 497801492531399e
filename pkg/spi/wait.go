// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

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
