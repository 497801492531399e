// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

const (
	// healing limits the time until the run has settled. The manager's own periods make up most of it: a Machine
	// that can never run fails after 20 or 45 minutes, and a deletion with a code like Unauthenticated is retried
	// after 10.
	healing = 2 * time.Hour
	// orphanRun is longer than an orphan run.
	orphanRun = 3 * time.Minute
	// lateEffects is longer than any call of a process that has crashed.
	lateEffects = 30 * time.Minute
)

// Result is what Run, Live or Endure observed.
type Result struct {
	// Violations are the broken promises; the run is a success if there are none.
	Violations []string
	// Trace has one line for each event.
	Trace string
	// Calls is the number of API calls.
	Calls int
	// Operations are the operations called, in order, including the manager's writes.
	Operations []string
	// Healed is the time from the end of the faults until the run had settled.
	Healed time.Duration
}

// run runs a story, and then lets everything that it started finish.
func (w *world) run(story func() Result) Result {
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	result := story()
	cancel()
	w.spawned.Wait()
	w.late.Wait()
	w.endProcesses()
	_ = spi.Sleep(context.Background(), w.clock, lateEffects)
	w.checkSecrets()
	w.checkCalls()
	result.Violations, result.Trace = w.violations, w.trace.text()
	result.Calls, result.Operations = w.calls, w.operations
	return result
}

// endProcesses ends all processes and waits for their goroutines.
func (w *world) endProcesses() {
	started := 0
	for _, c := range w.clusters {
		for _, p := range c.processes {
			p.end("ends")
			if p.manager != nil {
				p.manager.End()
				started++
			}
		}
	}
	w.fences.Wait()
	if err := manager.EndBroadcasters(started); err != nil {
		panic(err)
	}
}

// rest waits until the run has settled, and checks the result.
func (w *world) rest() Result {
	began := w.clock.Now()
	if !w.await(healing, w.settled) {
		w.violated("not settled after %s: a Machine does not run, or a deleted Machine still exists", healing)
	}
	result := Result{Healed: w.clock.Since(began)}
	w.log("settled, or out of time")
	// The last requests have to show.
	w.sleep(w.plan.Late + w.plan.ListLag + settle)
	w.late.Wait()
	if w.plan.promised() {
		w.checkRest("at rest", anyServer)
	}
	w.collectAll()
	w.checkRest("after an orphan run", anyServer)
	return result
}

// collectAll makes each cluster do an orphan run, and waits for its deletions: the run itself knows only that
// its DELETEs were accepted. Where the API is so slow that a DELETE may miss its deadline, it does four runs.
func (w *world) collectAll() {
	runs := 1
	if w.plan.isTooSlowForOrphans() {
		runs = 4
	}
	for range runs {
		for _, c := range w.clusters {
			c.collectSoon()
		}
		w.sleep(orphanRun + w.plan.Deletion + w.plan.ListLag)
	}
}

// tearDown deletes all Machines: after two orphan runs nothing of ours may be left, DELETING included.
func (w *world) tearDown() {
	for _, c := range w.clusters {
		for _, m := range c.machines() {
			c.unwant(m)
		}
	}
	if !w.await(healing, func() bool {
		for _, c := range w.clusters {
			if len(c.machines()) > 0 {
				return false
			}
		}
		return true
	}) {
		w.violated("not all Machines are gone after %s", healing)
	}
	if w.plan.promised() { // no Machine waits for the deletions of an orphan run
		w.checkRest("at the end", anyServer)
	}
	// The first may find servers that it cannot delete yet, or that stay DELETING until the next DELETE.
	for range 2 {
		if len(w.servers(anyServer)) > 0 {
			w.collectAll()
		}
	}
	w.checkForeign(true)
}

// Run simulates a plan. It must be called in a bubble of testing/synctest: elsewhere all waiting takes real
// time.
func Run(plan Plan) Result {
	w := newWorld(&plan)
	return w.run(func() Result {
		w.faultPeriod()
		result := w.rest()
		w.tearDown()
		return result
	})
}

// faultPeriod runs the part of the story that has faults.
func (w *world) faultPeriod() {
	until := w.clock.Now().Add(w.plan.FaultPeriod)
	w.injectPresets()
	for _, c := range w.clusters {
		c.comeOver()
		c.start()
		w.spawn(func() { c.users(random(w.plan.Seed, "users", c.name), until) })
		w.spawn(func() { c.turns(until) })
	}
	w.sleep(w.plan.FaultPeriod + time.Second)
	w.locked(func() { w.faultsOver = true })
	for _, c := range w.clusters {
		for _, name := range c.renewed {
			if m := c.machine(name); m != nil {
				c.unwant(m)
			}
		}
	}
	w.cloud.ClearFaults()
	w.log("the faults are over")
}

// injectPresets injects the faults that last for some time: the plan's preset and the storms.
func (w *world) injectPresets() {
	for _, preset := range presets() {
		if preset.Name == w.plan.Preset {
			w.cloud.Inject(preset.Fault)
			cause := presetTroubles[preset.Name]
			cause.name = preset.Name
			w.met(&cause)
		}
	}
	for _, storm := range w.plan.Storms {
		w.cloud.Inject(storm.fault())
	}
}

// turns runs the crashes, key rotations and pauses of a cluster.
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

// Life describes the single Machine of a run by Live, and its cloud.
type Life struct {
	name string
	// lag is the lag of the cloud's lists of servers.
	lag time.Duration
	// origins has one element if the Machine comes from OpenStack.
	origins []Origin
}

// Lives are the lives that the tests run with every fault, one at a time. The driver is called for the Machine
// from OpenStack before it is marked; its OpenStack resources are released late, so that much can happen between
// the end of its server and the DELETE of its volume.
var Lives = []Life{
	{name: "lag 0s"}, {name: "lag 20s", lag: 20 * time.Second},
	{name: "from OpenStack", lag: 5 * time.Second,
		origins: []Origin{{Class: classA, Servers: 1, Marked: 20 * time.Second}}},
}

// Live runs one Machine with these faults, from its creation or, if it comes from OpenStack, from its takeover, until
// it is gone. It must be called in a bubble of testing/synctest: elsewhere all waiting takes real time.
func Live(life Life, faults ...Fault) Result {
	plan := Plan{Seed: 1, Clusters: 1, ListLag: life.lag, Latency: 10 * time.Millisecond, Late: 6 * time.Second,
		Boot: 2 * time.Second, Deletion: 2 * time.Second, Origins: life.origins, Release: 8 * time.Second, Faults: faults}
	w := newWorld(&plan)
	return w.run(func() Result {
		c := w.clusters[0]
		c.start()
		w.sleep(15 * time.Second) // the Machine is not taken for a predecessor's work
		c.comeOver()
		if len(life.origins) == 0 {
			c.want(machineName(0), classA)
		}
		w.sleep(time.Minute) // a Machine requested again afterwards is another life
		result := w.rest()
		w.tearDown()
		return result
	})
}

// StormResult is what Endure observed.
type StormResult struct {
	Result
	// Posts counts the CreateServer calls during the storm, Accepted the calls that created a
	// server.
	Posts, Accepted int
}

// Endure creates this number of Machines at once, whose servers take boot to boot, and starts the storm's time with
// their creation. Result.Healed is the time from then until all run. It must be called in a bubble of
// testing/synctest: elsewhere all waiting takes real time.
func Endure(storm Storm, machines int, boot time.Duration) StormResult {
	plan := Plan{Seed: 1, Clusters: 1, Boot: boot, Deletion: 5 * time.Second, Latency: 50 * time.Millisecond}
	w := newWorld(&plan)
	w.disturbed = true
	var result StormResult
	result.Result = w.run(func() Result {
		c := w.clusters[0]
		c.start()
		w.sleep(15 * time.Second) // the Machines are not taken for a predecessor's work
		began := w.clock.Now()
		w.cloud.Inject(storm.fault())
		for i := range machines {
			c.want(machineName(i), classA)
		}
		if !w.await(healing, w.settled) {
			w.violated("not all Machines run after %s", healing)
		}
		healed := w.clock.Since(began)
		w.log("all Machines run")
		length := storm.From + storm.For
		w.sleep(length - healed)
		for _, call := range w.cloud.Calls() {
			if call.Operation == opCreate && call.StartedAt.Before(began.Add(length)) && call.StartedAt.After(began) {
				result.Posts++
				if call.Status == http.StatusCreated {
					result.Accepted++
				}
			}
		}
		w.rest()
		w.tearDown()
		return Result{Healed: healed}
	})
	return result
}
