// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// actingSince returns a function that tells since when this process alone acts on
// the machines: since its start without leader election, else since it leads
// (zero before). Machines made after that cannot have been a predecessor's.
func actingSince(leaderElection bool) func() time.Time {
	tenure := &tenure{}
	if leaderElection {
		// app.Run has no hook for it, but client-go tells its metrics.
		leaderelection.SetProvider(tenure)
	} else {
		tenure.begin()
	}
	return tenure.since
}

// tenure notes when this process began to lead. It is a metrics provider of
// client-go's leader election, and its metric.
type tenure struct {
	mu    sync.Mutex
	began time.Time
}

func (t *tenure) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = time.Now()
}

func (t *tenure) since() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
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
