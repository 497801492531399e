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

// shortestPause keeps the short stops of a loaded computer from counting.
const shortestPause = time.Second

// actingSince returns a function that tells since when this process alone acts on
// the machines: since its start without leader election, else since it leads
// (zero before). Machines made after that cannot have been a predecessor's.
func actingSince(election options.LeaderElectionConfiguration) func() time.Time {
	t := newTenure(election)
	if election.LeaderElect {
		// app.Run has no hook for it, but client-go tells its metrics.
		leaderelection.SetProvider(t)
		go wait.Forever(func() { t.since() }, t.pause/4)
	} else {
		t.begin()
	}
	return t.since
}

// tenure notes when this process began to lead. It is a metrics provider of
// client-go's leader election, and its metric.
//
// A process that stands still for longer than its lease (SIGSTOP, a laptop that
// sleeps) may have a successor when it goes on, and finds that out only when its next
// renewal has failed. Until then it must not take what it does not see for not
// existing: the pause begins a new tenure, in the future.
type tenure struct {
	now func() time.Time
	// pause is the longest that the process may stand still and surely keep its lease,
	// notice how long it takes until it knows that it lost it. Both are zero without
	// leader election: then there is no successor.
	pause, notice time.Duration

	mu           sync.Mutex
	began, alive time.Time
}

func newTenure(election options.LeaderElectionConfiguration) *tenure {
	t := &tenure{now: time.Now}
	if election.LeaderElect {
		// client-go renews the lease each RetryPeriod, and tries for RenewDeadline.
		t.notice = election.RetryPeriod.Duration + election.RenewDeadline.Duration
		t.pause = max(shortestPause, election.LeaseDuration.Duration-t.notice)
	}
	return t
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
	now := t.now()
	// By the wall clock, too: the other one stands still while a computer sleeps.
	stood := max(now.Sub(t.alive), now.Round(0).Sub(t.alive.Round(0)))
	if t.notice > 0 && !t.began.IsZero() && stood > t.pause {
		klog.InfoS("This process stood still: another one may have led meanwhile", "for", stood)
		t.began = now.Add(t.notice)
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
