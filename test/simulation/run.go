// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Run simulates a plan. It must be called in a bubble of testing/synctest: all
// waiting is in real time otherwise.
func Run(plan Plan) Result {
	f := &randomFaults{plan: &plan}
	s := newSimulation(&plan, f)
	s.disturbed = !plan.calm()
	return s.run(func() Result {
		s.faultPeriod(f)
		result := s.rest()
		s.tearDown()
		return result
	})
}

// faultPeriod is when things go wrong.
func (s *simulation) faultPeriod(f *randomFaults) {
	until := s.clock.Now().Add(s.plan.FaultPeriod)
	s.injectPresets()
	for _, c := range s.clusters {
		c.comeOver()
		leader := c.running()
		s.spawn(func() { c.begin(leader) })
		s.spawn(func() { c.users(random(s.plan.Seed, "users", c.name), until) })
		s.spawn(func() { c.turns(until) })
		s.spawn(c.machineSet)
	}
	s.sleep(s.plan.FaultPeriod + time.Second)
	f.over.Store(true)
	s.cloud.ClearFaults()
	s.log("nothing goes wrong any more")
}

// injectPresets puts in force what holds for some time: the plan's preset, and what comes and goes.
func (w *world) injectPresets() {
	for _, preset := range iaasmock.Presets() {
		if preset.Name == w.plan.Preset {
			w.cloud.Inject(w.anyOther(preset.Fault))
			cause := presetTroubles[preset.Name]
			cause.name = preset.Name
			w.met(&cause)
		}
	}
	w.hiccup()
	if w.plan.Storm.For > 0 {
		w.cloud.Inject(w.plan.Storm.fault())
	}
	w.failLists(w.plan.Outage)
}

// turns are the crashes, key rotations and pauses of a cluster.
func (c *cluster) turns(until time.Time) {
	rng := random(c.world.plan.Seed, "turns", c.name)
	plan := c.world.plan
	total := plan.Crashes + plan.Rotations + plan.Pauses
	for i := range total {
		left := until.Sub(c.world.clock.Now()) - 40*time.Second
		if left <= 0 || !c.world.sleep(between(rng, 0, left/time.Duration(total-i))) {
			return
		}
		p := c.running()
		switch {
		case i >= plan.Crashes+plan.Pauses:
			c.rotate(rng)
		case p == nil:
		case i >= plan.Crashes:
			c.standStill(p, drawStillness(rng))
		default:
			c.crash(p, "at any moment")
		}
	}
}
