// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/options"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// leadership notes when this process began to lead, which ends with the process. It is a
// metrics provider of client-go's leader election, and its metric.
type leadership struct{ began atomic.Pointer[time.Time] }

// newLeadership returns the leadership of this process, which leads from its start without
// leader election. client-go has one metrics provider only, so that its own metric,
// leader_election_master_status, is not shown: stackit_leader is in its place.
func newLeadership(election options.LeaderElectionConfiguration) *leadership {
	l := &leadership{}
	if election.LeaderElect {
		// app.Run has no hook for it, but client-go tells its metrics.
		leaderelection.SetProvider(l)
	} else {
		l.On("")
	}
	return l
}

// actingSince is since when this process alone acts on the machines: since its start
// without leader election, else since it leads (zero before). A predecessor cannot have
// worked on Machines made after that, but for the difference of clocks (clockSkew in
// pkg/provider).
func (l *leadership) actingSince() time.Time {
	if began := l.began.Load(); began != nil {
		return *began
	}
	return time.Time{}
}

// show shows as a metric whether this process leads.
func (l *leadership) show(registerer prometheus.Registerer) {
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stackit_leader",
		Help: "1 if this process leads, or runs without leader election; else 0. " +
			"In the place of client-go's leader_election_master_status: client-go tells one receiver who leads, " +
			"and the sidecar takes that to know since when.",
	}, func() float64 {
		if l.actingSince().IsZero() {
			return 0
		}
		return 1
	}))
}

// NewLeaderMetric implements leaderelection.MetricsProvider.
func (l *leadership) NewLeaderMetric() leaderelection.LeaderMetric { return l }

// On is called when this process becomes the leader.
func (l *leadership) On(string) {
	now := time.Now()
	l.began.Store(&now)
}

// Off is called at the start, and when the process stops leading: it exits next.
func (l *leadership) Off(string) {}

// SlowpathExercised counts something else.
func (l *leadership) SlowpathExercised(string) {}

// startFence returns a running fence; nil without leader election: then nobody can
// have led while this process stood still.
func startFence(election options.LeaderElectionConfiguration) *spi.Fence {
	if !election.LeaderElect {
		return nil
	}
	fence := spi.NewFence(clock.RealClock{}, toleratedPause(election), holdAfterPause(election))
	go fence.Run(context.Background())
	return fence
}

// shortestPause keeps the short stops of a loaded computer from counting.
const shortestPause = time.Second

// toleratedPause is the longest that the leader may stand still and surely keep its
// lease. client-go tries to renew it a RetryPeriod after it last did, and for
// RenewDeadline; the others wait for LeaseDuration until they take it.
func toleratedPause(election options.LeaderElectionConfiguration) time.Duration {
	spare := election.LeaseDuration.Duration - election.RenewDeadline.Duration - election.RetryPeriod.Duration
	return max(shortestPause, spare)
}

// holdAfterPause is how long after a pause client-go has surely renewed the lease,
// which proves that nobody else led, or ended the process: a RetryPeriod and
// RenewDeadline, with a second to spare; and never less than a lease lasts.
func holdAfterPause(election options.LeaderElectionConfiguration) time.Duration {
	return max(election.LeaseDuration.Duration, election.RenewDeadline.Duration+election.RetryPeriod.Duration+time.Second)
}
