// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
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

// simulation is one run: the world, and its clusters.
type simulation struct {
	*world
	clusters []*cluster
}

// newSimulation makes the clusters, each with a process that leads, and what others have in
// the project.
func newSimulation(plan *Plan, f injector) *simulation {
	keys := simulationKeys()
	s := &simulation{world: newWorld(plan, f, keys)}
	for i, api := range s.apis {
		s.clusters = append(s.clusters, newCluster(s.world, api, keys[1+2*i:3+2*i]))
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
	for _, c := range s.clusters {
		for _, p := range c.living() {
			p.cancel()
		}
	}
	s.fences.Wait()
	_ = spi.Sleep(context.Background(), s.clock, lateEffects)
	s.checkSecrets()
	result.Peak = s.checkCalls()
	result.Violations, result.Trace = s.violations, s.trace.text()
	result.Calls, result.Answers, result.Machines = s.calls, s.answers, s.lives
	return result
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
		s.checkRest("at rest")
	}
	s.collectAll()
	s.forgetAbandoned()
	s.checkRest("after an orphan run")
	return result
}

// collectAll makes one orphan run in each cluster that comes to its end, and waits for
// what it deletes: its DELETEs are accepted, and that is all that it knows.
func (s *simulation) collectAll() {
	for _, c := range s.clusters {
		if !s.await(healing, c.collectOrphans) {
			s.violated("no orphan run of %s comes to its end", c.name)
		}
	}
	s.sleep(s.plan.Deletion + s.plan.ListLag)
}

// tearDown deletes all Machines: after two orphan runs nothing of ours may be left, DELETING
// included.
func (s *simulation) tearDown() {
	for _, c := range s.clusters {
		for _, r := range c.api.all() {
			c.unwant(r)
		}
	}
	if !s.await(healing, func() bool {
		for _, c := range s.clusters {
			if len(c.api.all()) > 0 {
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
