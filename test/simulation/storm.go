// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Storm is a time in which the cloud does less than it is asked for.
type Storm struct {
	// Operation that fails; "" is all of them.
	Operation string
	// Status is the answer; 0 resets connections.
	Status int
	// Rate is how many calls a second are carried out all the same; 0 is none.
	Rate int
	// From the beginning of the run, For that long; For is 0 if there is no storm.
	From, For time.Duration
}

// fault is the storm as the mock's fault.
func (s Storm) fault() iaasmock.Fault {
	fault := iaasmock.Fault{Operation: s.Operation, Status: s.Status, DropBefore: s.Status == 0, After: s.From, Duration: s.For}
	if s.Operation == "" {
		fault.Operation = iaasmock.OperationIaaS
	}
	if s.Rate > 0 {
		limit := rate.NewLimiter(rate.Limit(s.Rate), s.Rate)
		fault.Match = func(*http.Request) bool { return !limit.Allow() }
	}
	return fault
}

// drawStorm draws a storm in the first half of the fault period: a kind of write that fails for
// minutes, or an API that takes two calls a second.
func drawStorm(rng *rand.Rand, faultPeriod time.Duration) Storm {
	s := Storm{
		Operation: pick(rng, opCreate, opDelete, opPatch), Status: pick(rng, 0, 429, 500, 503),
		From: between(rng, 0, faultPeriod/2), For: between(rng, time.Minute, 5*time.Minute),
	}
	if rng.IntN(3) == 0 {
		s.Operation, s.Status, s.Rate = "", 429, 2
	}
	return s
}

// StormResult is what a storm did.
type StormResult struct {
	Result
	// Posts are the CreateServer calls while it lasted, Accepted those that made a server.
	Posts, Accepted int
}

// Endure wants Machines when a storm begins. Result.Healed is how long it took from its end
// until all ran. Like Run it needs a bubble.
func Endure(s Storm, machines int, boot time.Duration) StormResult {
	plan := Plan{Seed: 1, Clusters: 1, Boot: boot, Deletion: 5 * time.Second, Latency: 50 * time.Millisecond}
	w := newWorld(&plan, &randomFaults{plan: &plan}, simulationKeys())
	w.disturbed = true
	var result StormResult
	result.Result = w.run(func() Result {
		w.cloud.Inject(s.fault())
		w.sleep(s.From)
		c := w.clusters[0]
		for i := range machines {
			c.want(machineName(i), classA)
		}
		w.sleep(s.For)
		for _, call := range w.cloud.Calls() {
			if call.Operation == opCreate && call.StartedAt.After(w.start.Add(s.From)) {
				result.Posts++
				if call.Status == http.StatusCreated {
					result.Accepted++
				}
			}
		}
		w.log("the storm is over")
		over := w.clock.Now()
		if !w.await(healing, w.settled) {
			w.violated("not all Machines run after %s", healing)
		}
		healed := w.clock.Since(over)
		w.rest()
		w.tearDown()
		return Result{Healed: healed}
	})
	return result
}
