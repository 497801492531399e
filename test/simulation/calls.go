// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"
)

const (
	// busiest is how many calls a cluster may make within ten seconds, and one more for
	// each Machine, which may all change something then. Reads for all that wait are
	// eight a second at most; the rest are requests that change something, and retries.
	busiest = 90
	// callsOfALife are at most made for a Machine to which nothing happens, those of
	// orphan runs included.
	callsOfALife = 80
	// callsOfLeftovers are at most made beside these for a Machine from OpenStack, whose NICs and
	// volumes are looked at until the cloud releases them.
	callsOfLeftovers = 200
	// longestPoll is the longest time between two reads of a server that boots, and a
	// little less: after a deadline of the driver they begin anew.
	longestPoll = 8 * time.Second
)

// checkCalls says whether there was more to do for the cloud than there has to be,
// and returns the peak.
func (w *world) checkCalls() int {
	peak := 0
	for _, begun := range w.begun {
		slices.Sort(begun)
		first := 0
		for last := range begun {
			for begun[last]-begun[first] >= 10*time.Second {
				first++
			}
			peak = max(peak, last-first+1)
		}
	}
	if peak > busiest+w.lives {
		w.violated("%d API calls of a cluster within ten seconds", peak)
	}
	atMost := (callsOfALife+int(w.plan.Boot/longestPoll))*w.lives + callsOfLeftovers*len(w.openStack)
	if !w.disturbed && w.calls > atMost {
		w.violated("%d API calls for %d Machines to which nothing happened", w.calls, w.lives)
	}
	return peak
}
