// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// tickInterval is the interval at which a Fence notes that the process runs.
const tickInterval = 500 * time.Millisecond

// Fence holds API calls back after a pause of this process (SIGSTOP, a stalled node) during which
// another process may have taken the lease. A resumed process still acts as the leader, and its
// cache may lack the new leader's changes. One Fence serves all sessions of a process.
type Fence struct {
	clock clock.WithTicker
	// tolerated is the longest time between two ticks that does not count as a pause.
	tolerated time.Duration
	// hold is how long no attempt is sent after a pause was noted.
	hold time.Duration

	mu sync.Mutex
	// ticked is when the process was last seen running, by the wall clock.
	ticked time.Time
	// heldUntil is when the last pause stops holding attempts back; zero without a pause.
	heldUntil time.Time
}

// NewFence returns a Fence that detects pauses of the process from now on, as gaps between the ticks
// of Run: call Run at once. tolerated is the longest gap that does not count as a pause; it must
// exceed 500 ms. hold is the time after a pause during which no attempt is sent. The sidecar's
// values are in cmd/machine-controller/leading.go.
func NewFence(clock clock.WithTicker, tolerated, hold time.Duration) *Fence {
	return &Fence{clock: clock, tolerated: tolerated, hold: hold, ticked: clock.Now().Round(0)}
}

// Run ticks every 500 ms until ctx ends. Without these ticks, the Fence would take every idle time
// between two attempts for a pause.
func (f *Fence) Run(ctx context.Context) {
	ticker := f.clock.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		f.tick()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// tick notes that the process runs, and returns how long no attempt may be sent: zero or less if it
// may. It checks for a pause first, because either Run or an attempt may be the first to run after
// it.
func (f *Fence) tick() (held time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	// By the wall clock: the monotonic one stands still while a computer sleeps.
	if stood := now.Round(0).Sub(f.ticked); stood > f.tolerated {
		klog.InfoS("Process was paused; holding back API calls because another sidecar may be the leader now",
			"pausedFor", stood, "holdFor", f.hold)
		f.heldUntil = now.Add(f.hold)
	}
	f.ticked = now.Round(0)
	return f.heldUntil.Sub(now)
}

// fenced holds an attempt until no pause holds it back.
type fenced struct {
	next  http.RoundTripper
	fence *Fence
	// queue is the link with the process's limit. Attempts that were held back queue there again:
	// otherwise all would be sent at once.
	queue http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	held := f.fence.tick()
	if held <= 0 {
		return f.next.RoundTrip(request)
	}
	if err := Sleep(request.Context(), f.fence.clock, held); err != nil {
		return nil, notSent(fmt.Errorf("waiting after a pause of this process: %w", err))
	}
	return f.queue.RoundTrip(request) // which leads here again
}
