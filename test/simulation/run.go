// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	// healing is within how long all is well again. The manager's own periods make
	// most of it: a Machine that can never run fails after 20 or 45 minutes, and a
	// deletion with a code like Unauthenticated rests 10.
	healing = 2 * time.Hour
	// lateEffects is longer than any call of a process that has crashed.
	lateEffects = 30 * time.Minute
)

// Result of a run.
type Result struct {
	// Violations are what must not have been; none is a success.
	Violations []string
	// Trace is what happened, one line an event.
	Trace string
	// Calls of the API, Answers of the driver, and Machines there were.
	Calls, Answers, Machines int
	// Peak is the greatest number of calls of a cluster within ten seconds.
	Peak int
	// Healed is how long it took until all was well, once nothing went wrong any
	// more.
	Healed time.Duration
}

// Run simulates a plan. It must be called in a bubble of testing/synctest: all
// waiting is in real time otherwise.
func Run(plan Plan) Result {
	f := &randomFaults{plan: &plan}
	w := newWorld(&plan, f, simulationKeys())
	w.disturbed = !plan.calm()
	return w.run(func() Result {
		w.faultPeriod(f)
		result := w.rest()
		w.tearDown()
		return result
	})
}

// run lets a story happen, and then all that it began come to its end.
func (w *world) run(story func() Result) Result {
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	result := story()
	cancel()
	w.spawned.Wait()
	w.late.Wait()
	for _, c := range w.clusters {
		for _, p := range c.living() {
			p.cancel()
		}
	}
	w.fences.Wait()
	_ = spi.Sleep(context.Background(), w.clock, lateEffects)
	w.checkSecrets()
	result.Peak = w.checkCalls()
	result.Violations, result.Trace = w.violations, w.trace.text()
	result.Calls, result.Answers, result.Machines = w.calls, w.answers, w.lives
	return result
}

// faultPeriod is when things go wrong.
func (w *world) faultPeriod(f *randomFaults) {
	until := w.clock.Now().Add(w.plan.FaultPeriod)
	w.injectPresets()
	for _, c := range w.clusters {
		c.comeOver()
		w.spawn(c.running().begin)
		w.spawn(func() { c.users(random(w.plan.Seed, "users", c.name), until) })
		w.spawn(func() { c.turns(until) })
		w.spawn(c.machineSet)
	}
	w.sleep(w.plan.FaultPeriod + time.Second)
	f.over.Store(true)
	w.cloud.ClearFaults()
	w.log("nothing goes wrong any more")
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

// failLists lets lists of servers fail for a while.
func (w *world) failLists(o Outage) {
	if o.Status == 0 {
		return
	}
	fault := gateway(o.Status, false)
	if o.Status == http.StatusInternalServerError {
		fault = apiAnswer(o.Status, "internal server error")
	}
	fault.Operation, fault.After, fault.Duration = opList, o.From, o.For
	if o.Wide {
		fault.Match = func(r *http.Request) bool {
			return !strings.Contains(r.URL.Query().Get("label_selector"), provider.StackitMachineLabel+"=")
		}
	}
	w.cloud.Inject(fault)
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
			p.standStill(drawStillness(rng))
		default:
			p.crash("at any moment")
		}
	}
}

// machineSet replaces what has failed.
func (c *cluster) machineSet() {
	for c.world.sleep(10 * time.Second) {
		c.replaceFailed()
	}
}

// rest waits until all is well, and checks that it is.
func (w *world) rest() Result {
	w.edits.Wait()
	began := w.clock.Now()
	if !w.await(healing, w.settled) {
		w.violated("not all is well after %s", healing)
	}
	result := Result{Healed: w.clock.Since(began)}
	w.log("all is at rest")
	// What was asked for last has to show.
	w.sleep(w.plan.Late + w.plan.ListLag + settle)
	w.late.Wait()
	if w.plan.promised() {
		w.checkRest("at rest")
	}
	w.collectAll()
	w.forgetAbandoned()
	w.checkRest("after an orphan run")
	return result
}

// collectAll makes one orphan run in each cluster that comes to its end, and waits for
// what it deletes: its DELETEs are accepted, and that is all that it knows.
func (w *world) collectAll() {
	for _, c := range w.clusters {
		if !w.await(healing, c.collectOrphans) {
			w.violated("no orphan run of %s comes to its end", c.name)
		}
	}
	w.sleep(w.plan.Deletion + w.plan.ListLag)
}

// tearDown deletes all Machines: after two orphan runs nothing of ours may be left, DELETING
// included.
func (w *world) tearDown() {
	for _, c := range w.clusters {
		for _, r := range c.api.all() {
			c.unwant(r)
		}
	}
	if !w.await(healing, func() bool {
		for _, c := range w.clusters {
			if len(c.api.all()) > 0 {
				return false
			}
		}
		return true
	}) {
		w.violated("not all Machines are gone after %s", healing)
	}
	w.checkEnd()
	// The first may find what it cannot delete yet, or what stays DELETING until it is
	// asked for again.
	for range 2 {
		if len(w.servers(anyServer)) > 0 {
			w.collectAll()
		}
	}
	w.foreign.check(w, true)
}
