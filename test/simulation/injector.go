// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"sync/atomic"
	"time"
)

// injector decides what goes wrong.
type injector interface {
	request(call) callFault
	answer(answer) answerFault
	// stale is by how many versions the cache is behind.
	stale(cluster, machine string, reconcile int) int
}

// randomFaults is the injector of a plan: what happens depends on the seed and on what the
// request is, not on what else is going on.
type randomFaults struct {
	plan *Plan
	// over is set once nothing goes wrong any more.
	over atomic.Bool
}

func (o *randomFaults) request(c call) callFault {
	rng := random(o.plan.Seed, "request", c.cluster, c.operation, c.subject, c.caller, c.repeat)
	u := callFault{there: between(rng, time.Millisecond, o.plan.Latency), back: between(rng, time.Millisecond, o.plan.Latency)}
	if o.over.Load() {
		return u
	}
	late := between(rng, 0, o.plan.Late)
	switch {
	case chance(rng, o.plan.Probabilities.CrashAtRequest):
		u.crashBefore = rng.IntN(2) == 0
		u.crashAfter = !u.crashBefore
		u.late = late
	case chance(rng, o.plan.Probabilities.Vanish):
		u.vanish, u.late = true, late
	case chance(rng, o.plan.Probabilities.Fault):
		u.trouble = pick(rng, o.troubles(c.operation)...)
	case chance(rng, o.plan.Probabilities.Pause):
		u.pause = drawStillness(rng)
	}
	return u
}

// troubles are those of the operation that the plan has.
func (o *randomFaults) troubles(operation string) []*trouble {
	return slices.DeleteFunc(troublesOf(operation), func(t *trouble) bool {
		return t.forgets && !o.plan.Forgetful || t.hides && o.plan.Hiccup > 0 || t.strands && !o.plan.staysAlive() ||
			t.leaves && len(o.plan.Origins) > 0
	})
}

func (o *randomFaults) answer(a answer) answerFault {
	if o.over.Load() {
		return answerFault{}
	}
	rng := random(o.plan.Seed, "answer", a.cluster, a.machine, a.method, a.repeat)
	var m answerFault
	if chance(rng, o.plan.Probabilities.CrashAtAnswer) {
		m.crashBefore = rng.IntN(2) == 0
		m.crashAfter = !m.crashBefore
	}
	m.conflict = chance(rng, o.plan.Probabilities.Conflict)
	return m
}

func (o *randomFaults) stale(cluster, machine string, reconcile int) int {
	rng := random(o.plan.Seed, "cache", cluster, machine, reconcile)
	if o.over.Load() || !chance(rng, o.plan.Probabilities.Stale) {
		return 0
	}
	return 1 + rng.IntN(3)
}
