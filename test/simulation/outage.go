// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// Outlive wants Machines at the beginning of a time in which lists of servers fail and
// all else works. Result.Healed is how long it took until all ran; it is a violation if
// they do not before the outage is over. Like Run it needs a bubble.
func Outlive(o Outage, machines int) Result {
	plan := Plan{Seed: 1, Clusters: 1, Boot: 12 * time.Second, Deletion: 5 * time.Second, Outage: o}
	w := newWorld(&plan, &once{}, simulationKeys())
	w.disturbed = true
	return w.run(func() Result {
		c := w.clusters[0]
		w.failLists(o)
		began := w.clock.Now()
		for i := range machines {
			c.want(machineName(i), classA)
		}
		if !w.await(o.From+o.For, w.settled) {
			w.violated("not all Machines run when the outage is over")
		}
		result := Result{Healed: w.clock.Since(began)}
		w.log("all Machines run")
		w.sleep(o.From + o.For - result.Healed)
		w.rest()
		w.tearDown()
		return result
	})
}
