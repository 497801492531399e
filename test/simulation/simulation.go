// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

const (
	// healing is within how long all is well again. The manager's own periods make
	// most of it: a Machine that can never run fails after 20 or 45 minutes, and a
	// deletion with a code like Unauthenticated rests 10.
	healing = 2 * time.Hour
	// orphanRun is longer than an orphan run.
	orphanRun = 3 * time.Minute
	// lateEffects is longer than any call of a process that has crashed.
	lateEffects = 30 * time.Minute
)

// Result of a run.
type Result struct {
	// Violations are what must not have been; none is a success.
	Violations []string
	// Trace is what happened, one line an event.
	Trace string
	// Calls of the API, and Machines there were.
	Calls, Machines int
	// Operations that were asked for, in order, the manager's writes among them.
	Operations []string
	// Peak is the greatest number of calls of a cluster within ten seconds.
	Peak int
	// Healed is how long it took until all was well, once nothing went wrong any
	// more.
	Healed time.Duration
}

// simulation is one run: the world, and its clusters.
type simulation struct{ *world }

// newSimulation makes the clusters, each with a process that leads, and what others have in
// the project.
func newSimulation(plan *Plan) *simulation {
	keys := simulationKeys()
	s := &simulation{world: newWorld(plan, keys)}
	for i := range plan.Clusters {
		s.clusters = append(s.clusters, newCluster(s.world, clusterName(i), keys[1+2*i:3+2*i]))
	}
	s.populate(keys[0])
	return s
}

// run lets a story happen, and then all that it began come to its end.
func (s *simulation) run(story func() Result) Result {
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	result := story()
	cancel()
	s.spawned.Wait()
	s.late.Wait()
	s.endProcesses()
	_ = spi.Sleep(context.Background(), s.clock, lateEffects)
	s.checkSecrets()
	result.Peak = s.checkCalls()
	result.Violations, result.Trace = s.violations, s.trace.text()
	result.Calls, result.Machines, result.Operations = s.calls, s.lives, s.operations
	return result
}

// endProcesses ends all processes; nothing of them is left.
func (s *simulation) endProcesses() {
	started := 0
	for _, c := range s.clusters {
		for _, p := range c.processes {
			p.end("ends")
			if p.manager != nil {
				p.manager.End()
				started++
			}
		}
	}
	s.fences.Wait()
	if err := manager.EndBroadcasters(started); err != nil {
		panic(err)
	}
}

// rest waits until all is well, and checks that it is.
func (s *simulation) rest() Result {
	s.edits.Wait()
	began := s.clock.Now()
	if !s.await(healing, s.settled) {
		s.violated("not all is well after %s", healing)
	}
	result := Result{Healed: s.clock.Since(began)}
	s.log("all is at rest")
	// What was asked for last has to show.
	s.sleep(s.plan.Late + s.plan.ListLag + settle)
	s.late.Wait()
	if s.plan.promised() {
		s.checkRest("at rest", s.stays)
	}
	s.collectAll()
	s.forgetAbandoned()
	s.checkRest("after an orphan run", anyServer)
	return result
}

// collectAll lets each cluster make an orphan run, and waits for what it deletes: its DELETEs are
// accepted, and that is all that it knows. Where the API is so slow that a DELETE may come too late, it
// makes four.
func (s *simulation) collectAll() {
	runs := 1
	if s.isTooSlowForOrphans() {
		runs = 4
	}
	for range runs {
		for _, c := range s.clusters {
			c.collectSoon()
		}
		s.sleep(orphanRun + s.plan.Deletion + s.plan.ListLag)
	}
}

// tearDown deletes all Machines: after two orphan runs nothing of ours may be left, DELETING
// included.
func (s *simulation) tearDown() {
	for _, c := range s.clusters {
		for _, m := range c.machines() {
			c.unwant(m)
		}
	}
	if !s.await(healing, func() bool {
		for _, c := range s.clusters {
			if len(c.machines()) > 0 {
				return false
			}
		}
		return true
	}) {
		s.violated("not all Machines are gone after %s", healing)
	}
	s.checkEnd()
	// The first may find what it cannot delete yet, or what stays DELETING until it is
	// asked for again.
	for range 2 {
		if len(s.servers(anyServer)) > 0 {
			s.collectAll()
		}
	}
	s.checkForeign(true)
}

// Run simulates a plan. It must be called in a bubble of testing/synctest: all
// waiting is in real time otherwise.
func Run(plan Plan) Result {
	s := newSimulation(&plan)
	s.disturbed = !plan.calm()
	return s.run(func() Result {
		s.faultPeriod()
		result := s.rest()
		s.tearDown()
		return result
	})
}

// faultPeriod is when things go wrong.
func (s *simulation) faultPeriod() {
	until := s.clock.Now().Add(s.plan.FaultPeriod)
	s.injectPresets()
	for _, c := range s.clusters {
		c.comeOver()
		c.start()
		s.spawn(func() { c.users(random(s.plan.Seed, "users", c.name), until) })
		s.spawn(func() { c.turns(until) })
	}
	s.sleep(s.plan.FaultPeriod + time.Second)
	s.mu.Lock()
	s.faultsOver = true
	s.mu.Unlock()
	for _, c := range s.clusters {
		for _, name := range c.renewed {
			if m := c.machine(name); m != nil {
				c.unwant(m)
			}
		}
	}
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
	for _, storm := range w.plan.Storms {
		w.cloud.Inject(storm.fault())
	}
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

// Life is the one Machine of a life, and its cloud.
type Life struct {
	name string
	// lag of the cloud's lists of servers.
	lag time.Duration
	// origins has one where the Machine comes from OpenStack.
	origins []Origin
}

// Lives are those in which everything goes wrong, one at a time. The Machine from OpenStack is
// asked for before it is marked; what it had there is released late, so that much can happen
// between the end of its server and the DELETE of its volume.
var Lives = []Life{
	{name: "lag 0s"}, {name: "lag 20s", lag: 20 * time.Second},
	{name: "from OpenStack", lag: 5 * time.Second, origins: []Origin{{Class: classA, Servers: 1, Marked: 20 * time.Second}}},
}

// Live takes one Machine from its creation, or the moment when we take it over, until it is
// gone, and lets these things go wrong. Like Run it needs a bubble.
func Live(life Life, faults ...Fault) Result {
	plan := Plan{Seed: 1, Clusters: 1, ListLag: life.lag, Latency: 10 * time.Millisecond, Late: 6 * time.Second,
		Boot: 2 * time.Second, Deletion: 2 * time.Second, Origins: life.origins, Release: 8 * time.Second, Faults: faults}
	for _, f := range faults {
		plan.Hiccup = max(plan.Hiccup, f.hiccup)
		plan.Forgetful = plan.Forgetful || f.trouble != nil && f.trouble.forgets
	}
	s := newSimulation(&plan)
	s.disturbed = !plan.calm()
	return s.run(func() Result {
		c := s.clusters[0]
		c.start()
		s.sleep(15 * time.Second) // the Machine is not taken for a predecessor's work
		c.comeOver()
		if len(life.origins) == 0 {
			c.want(machineName(0), classA)
		}
		s.sleep(time.Minute) // a Machine that is wanted again afterwards is another life
		result := s.rest()
		s.tearDown()
		return result
	})
}

// StormResult is what a storm did.
type StormResult struct {
	Result
	// Posts are the CreateServer calls while it lasted, Accepted those that made a server.
	Posts, Accepted int
}

// Endure wants Machines, from whose beginning the storm's time counts. Result.Healed is how long it took
// until all ran. Like Run it needs a bubble.
func Endure(storm Storm, machines int, boot time.Duration) StormResult {
	plan := Plan{Seed: 1, Clusters: 1, Boot: boot, Deletion: 5 * time.Second, Latency: 50 * time.Millisecond}
	s := newSimulation(&plan)
	s.disturbed = true
	var result StormResult
	result.Result = s.run(func() Result {
		c := s.clusters[0]
		c.start()
		s.sleep(15 * time.Second) // the Machines are not taken for a predecessor's work
		began := s.clock.Now()
		s.cloud.Inject(storm.fault())
		for i := range machines {
			c.want(machineName(i), classA)
		}
		if !s.await(healing, s.settled) {
			s.violated("not all Machines run after %s", healing)
		}
		healed := s.clock.Since(began)
		s.log("all Machines run")
		length := storm.From + storm.For
		s.sleep(length - healed)
		for _, call := range s.cloud.Calls() {
			if call.Operation == opCreate && call.StartedAt.Before(began.Add(length)) && call.StartedAt.After(began) {
				result.Posts++
				if call.Status == http.StatusCreated {
					result.Accepted++
				}
			}
		}
		s.rest()
		s.tearDown()
		return Result{Healed: healed}
	})
	return result
}
