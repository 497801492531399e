// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Outlive wants Machines at the beginning of a time in which lists of servers fail and
// all else works. Result.Healed is how long it took until all ran; it is a violation if
// they do not before the outage is over. Like Run it needs a bubble.
func Outlive(o Outage, machines int) Result {
	plan := Plan{Seed: 1, Clusters: 1, Boot: 12 * time.Second, Deletion: 5 * time.Second, Outage: o}
	s := newSimulation(&plan, &once{})
	s.disturbed = true
	return s.run(func() Result {
		c := s.clusters[0]
		s.failLists(o)
		began := s.clock.Now()
		for i := range machines {
			c.want(machineName(i), classA)
		}
		if !s.await(o.From+o.For, s.settled) {
			s.violated("not all Machines run when the outage is over")
		}
		result := Result{Healed: s.clock.Since(began)}
		s.log("all Machines run")
		s.sleep(o.From + o.For - result.Healed)
		s.rest()
		s.tearDown()
		return result
	})
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
