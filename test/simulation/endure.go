// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"time"
)

// StormResult is what a storm did.
type StormResult struct {
	Result
	// Posts are the CreateServer calls while it lasted, Accepted those that made a server.
	Posts, Accepted int
}

// Endure wants Machines when a storm begins. Result.Healed is how long it took from its end
// until all ran. Like Run it needs a bubble.
func Endure(storm Storm, machines int, boot time.Duration) StormResult {
	plan := Plan{Seed: 1, Clusters: 1, Boot: boot, Deletion: 5 * time.Second, Latency: 50 * time.Millisecond}
	s := newSimulation(&plan, &randomFaults{plan: &plan})
	s.disturbed = true
	var result StormResult
	result.Result = s.run(func() Result {
		s.cloud.Inject(storm.fault())
		s.sleep(storm.From)
		c := s.clusters[0]
		for i := range machines {
			c.want(machineName(i), classA)
		}
		s.sleep(storm.For)
		for _, call := range s.cloud.Calls() {
			if call.Operation == opCreate && call.StartedAt.After(s.start.Add(storm.From)) {
				result.Posts++
				if call.Status == http.StatusCreated {
					result.Accepted++
				}
			}
		}
		s.log("the storm is over")
		over := s.clock.Now()
		if !s.await(healing, s.settled) {
			s.violated("not all Machines run after %s", healing)
		}
		healed := s.clock.Since(over)
		s.rest()
		s.tearDown()
		return Result{Healed: healed}
	})
	return result
}
