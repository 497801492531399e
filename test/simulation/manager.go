// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// tend lets the process reconcile a Machine until it is gone, or the process.
func (c *cluster) tend(p *process, r *record) {
	p.mu.Lock()
	known := p.tended[r]
	p.tended[r] = true
	p.mu.Unlock()
	if !known {
		c.world.spawn(func() { c.reconcile(p, r) })
	}
}

// reconcile makes one pass after another.
func (c *cluster) reconcile(p *process, r *record) {
	first, _ := c.api.latestOf(r)
	rng := random(c.world.plan.Seed, "tend", p.name, first.UID)
	seen := c.api.observe(r)
	for gap, count := between(rng, 0, time.Second), 0; p.wait(gap, seen.woken); count++ {
		machine, exists := c.api.cached(seen, c.world.injector.stale(p.name, first.Name, count), p.remembers())
		if !exists {
			return
		}
		retry := time.Second
		if machine != nil {
			pass := &reconcile{cluster: c, process: p, record: r, machine: machine}
			pass.class, pass.secret = c.inputs(machine.Spec.Class.Name)
			retry = p.inTurn(first.Name, pass.run)
			if latest, _ := c.api.latestOf(r); latest.ResourceVersion != machine.ResourceVersion {
				retry = min(retry, 2*time.Second) // the cache will show it
			}
		}
		gap = untilNext(rng, retry)
	}
}

// untilNext is any time up to the retry period: events of other objects re-queue a
// Machine whenever they like.
func untilNext(rng *rand.Rand, retry time.Duration) time.Duration {
	if rng.IntN(3) == 0 {
		return between(rng, 0, min(retry, time.Second))
	}
	return between(rng, 0, retry)
}

func (r *reconcile) run() time.Duration {
	phase := r.machine.Status.CurrentStatus.Phase
	switch {
	case r.machine.DeletionTimestamp != nil:
		return r.deletion()
	case r.labeled() && phase != "" && r.health():
		return shortRetry
	case !r.labeled() || phase == "" || phase == v1alpha1.MachineCrashLoopBackOff:
		return r.creation()
	case phase == v1alpha1.MachinePending || phase == v1alpha1.MachineUnknown:
		return shortRetry // an event of its Node ends that
	}
	return longRetry
}

// health is reconcileMachineHealth: what a Node brings about. It says whether that
// was the whole pass. Whatever the phase is, a Ready Node makes the Machine Running:
// a creation that has not come to its end is never gone on with then.
func (r *reconcile) health() bool {
	status := r.machine.Status.CurrentStatus
	switch ready := r.nodeReady(); {
	case ready && status.Phase != v1alpha1.MachineRunning:
		r.setPhase(v1alpha1.MachineRunning)
	case !ready && status.Phase == v1alpha1.MachineRunning:
		r.setPhase(v1alpha1.MachineUnknown)
	case status.Phase == v1alpha1.MachinePending && r.tooLate(),
		status.Phase == v1alpha1.MachineUnknown && r.process.clock.Since(status.LastUpdateTime.Time) > healthTimeout:
		r.setPhase(v1alpha1.MachineFailed)
	default:
		return false
	}
	return true
}
