// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/options"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
)

// heartbeat is how often the process notes that it runs.
const heartbeat = time.Second

// actingSince returns a function that tells since when this process alone acts on
// the machines: since its start without leader election, else since it leads
// (zero before). Machines made after that cannot have been a predecessor's.
func actingSince(election options.LeaderElectionConfiguration) func() time.Time {
	t := &tenure{now: time.Now}
	if election.LeaderElect {
		t.renewal = election.RenewDeadline.Duration
		t.pause = election.LeaseDuration.Duration - t.renewal
		// app.Run has no hook for it, but client-go tells its metrics.
		leaderelection.SetProvider(t)
		go wait.Forever(func() { t.since() }, heartbeat)
	} else {
		t.begin()
	}
	return t.since
}

// tenure notes when this process began to lead. It is a metrics provider of
// client-go's leader election, and its metric.
//
// A process that stands still for longer than its lease (SIGSTOP, a frozen node)
// has a successor when it goes on, and finds that out only at the end of the next
// renewal, which client-go tries for renewal. Until then it must not take what it
// does not see for not existing: the pause begins a new tenure, in the future.
type tenure struct {
	now func() time.Time
	// pause is the longest that the process may stand still without losing the lease
	// it last renewed, renewal how long it tries to renew it. Both are zero without
	// leader election: then there is no successor.
	pause, renewal time.Duration

	mu           sync.Mutex
	began, alive time.Time
}

func (t *tenure) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = t.now()
	t.alive = t.began
}

func (t *tenure) since() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	// By the wall clock: others stand still while a whole computer sleeps.
	now := t.now().Round(0)
	if stood := now.Sub(t.alive.Round(0)); t.renewal > 0 && !t.began.IsZero() && stood > t.pause {
		klog.InfoS("This process stood still: another one may have led meanwhile", "for", stood)
		t.began = now.Add(t.renewal)
	}
	t.alive = now
	return t.began
}

// NewLeaderMetric implements leaderelection.MetricsProvider.
func (t *tenure) NewLeaderMetric() leaderelection.LeaderMetric { return t }

// On is called when this process becomes the leader.
func (t *tenure) On(string) { t.begin() }

// Off is called at the start and when the process stops leading; it then exits.
func (t *tenure) Off(string) {}

// SlowpathExercised counts something else.
func (t *tenure) SlowpathExercised(string) {}
