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

// leadership records when this process became the leader; it leads until it ends. It is a metrics provider of
// client-go's leader election, and that provider's metric.
type leadership struct{ began atomic.Pointer[time.Time] }

// newLeadership returns the leadership of this process. Without leader election, it leads from its start.
func newLeadership(election options.LeaderElectionConfiguration) *leadership {
	l := &leadership{}
	if election.LeaderElect {
		// app.Run has no hook for the start of leadership, but client-go reports it to the metrics provider.
		leaderelection.SetProvider(l)
	} else {
		l.On("")
	}
	return l
}

// actingSince returns when this process became the only one to act on the machines: its start without leader election,
// else the start of its leadership; zero before. A predecessor cannot have worked on Machines created later, except for
// the clock difference (clockSkew in pkg/provider).
func (l *leadership) actingSince() time.Time {
	if began := l.began.Load(); began != nil {
		return *began
	}
	return time.Time{}
}

// show registers a metric that is 1 while this process leads. Other Kubernetes components get it from component-base.
// client-go accepts only one metrics provider, and component-base's does not tell when the leadership began.
func (l *leadership) show(registerer prometheus.Registerer) {
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "leader_election_master_status",
		Help:        "1 if this process holds the lease, or runs without leader election, else 0.",
		ConstLabels: prometheus.Labels{"name": "machine-controller"}, // MCM's lease (v0.62.1 app.go:181)
	}, func() float64 {
		if l.actingSince().IsZero() {
			return 0
		}
		return 1
	}))
}

// NewLeaderMetric implements leaderelection.MetricsProvider.
func (l *leadership) NewLeaderMetric() leaderelection.LeaderMetric { return l }

// On records that this process has become the leader.
func (l *leadership) On(string) {
	now := time.Now()
	l.began.Store(&now)
}

// Off does nothing. client-go calls it at the start, and when the process stops leading; then the
// process exits.
func (l *leadership) Off(string) {}

// SlowpathExercised does nothing: it does not change the leadership.
func (l *leadership) SlowpathExercised(string) {}

// startFence returns a running fence; nil without leader election, when no other process can have led while this one
// was paused.
func startFence(election options.LeaderElectionConfiguration) *spi.Fence {
	if !election.LeaderElect {
		return nil
	}
	// Within a lease of the pause's end client-go has either renewed it, which proves that no other process led, or
	// ended this process.
	fence := spi.NewFence(clock.RealClock{}, toleratedPause(election), election.LeaseDuration.Duration)
	go fence.Run(context.Background())
	return fence
}

// toleratedPause is the longest pause after which the leader still holds its lease. client-go starts to renew it a
// RetryPeriod after the last renewal, and tries for RenewDeadline; other replicas take the lease after LeaseDuration.
// A loaded computer pauses processes for a short time: at least a second is tolerated.
func toleratedPause(election options.LeaderElectionConfiguration) time.Duration {
	spare := election.LeaseDuration.Duration - election.RenewDeadline.Duration - election.RetryPeriod.Duration
	return max(time.Second, spare)
}
