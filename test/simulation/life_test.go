// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEveryPointOfALife lets everything go wrong at each API call and each write of the manager
// in a Machine's life, one at a time.
func TestEveryPointOfALife(t *testing.T) {
	for _, life := range Lives {
		calm := live(t, life)
		if len(calm.Violations) > 0 || calm.Answers < 5 {
			t.Fatalf("without any disturbance: %v\n%s", calm.Violations, calm.Trace)
		}
		var all []Fault
		counts := map[string]int{}
		for _, operation := range calm.Operations {
			for _, f := range FaultsOf(operation) {
				f.Nth = counts[operation]
				all = append(all, f)
			}
			counts[operation]++
		}
		t.Logf("%s: %d API calls, %d writes, %d lives", life.name, calm.Calls, counts[opWrite], len(all))
		for i := 0; i < len(all); i += *nth {
			t.Run(fmt.Sprintf("%s, %s", life.name, all[i]), func(t *testing.T) {
				t.Parallel()
				goOn(t)
				name := strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "'", ".") // between quotes of a shell
				report(t, all[i], live(t, life, all[i]), fmt.Sprintf("-nth=1 -run '^%s$'", name))
			})
		}
	}
}

func live(t *testing.T, life Life, faults ...Fault) (result Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result = Live(life, faults...) })
	return result
}

// TestACalmLifeIsCheap bounds the API calls of a Machine to which nothing happens, six for three
// orphan runs among them.
func TestACalmLifeIsCheap(t *testing.T) {
	const atMost = 19
	if result := live(t, Lives[0]); result.Calls > atMost {
		t.Errorf("%d API calls, want at most %d:\n%s", result.Calls, atMost, result.Trace)
	}
}

// TestAClockThatIsAheadDelaysNothing: what the API server writes shows in caches as soon as ever, whatever
// its clock is, so that the manager's writes meet no more conflicts.
func TestAClockThatIsAheadDelaysNothing(t *testing.T) {
	plan := Plan{Seed: 1, Clusters: 1, Machines: 1, Boot: time.Second, Latency: time.Millisecond}
	conflicts := func(skew time.Duration) int {
		plan.Skew = skew
		return strings.Count(simulate(t, plan).Trace, "a write fails with 409")
	}
	if right, ahead := conflicts(0), conflicts(25*time.Second); ahead != right {
		t.Errorf("%d conflicts, want %d", ahead, right)
	}
}

// TestListsFailWhileReadsWork: who waits for a server needs no list, and who looks
// for one none but that of its Machine. In short mode with one status.
func TestListsFailWhileReadsWork(t *testing.T) {
	const machines, soon = 20, time.Minute
	statuses := []int{503, 500, 502, 504}
	if testing.Short() {
		statuses = statuses[:1]
	}
	for name, outage := range map[string]Outage{
		"lists of many Machines fail":           {For: 6 * time.Minute, Wide: true},
		"all lists fail once servers were made": {From: 3 * time.Second, For: 6 * time.Minute},
	} {
		for _, status := range statuses {
			t.Run(fmt.Sprintf("%s with %d", name, status), func(t *testing.T) {
				t.Parallel()
				goOn(t)
				failing := outage
				failing.Status = status
				var result Result
				synctest.Test(t, func(*testing.T) { result = Outlive(failing, machines) })
				if len(result.Violations) > 0 || result.Healed > soon {
					t.Errorf("all Machines ran after %s, want %s\n%s\n%s", result.Healed, soon, strings.Join(result.Violations, "\n"), result.Trace)
				}
			})
		}
	}
}

// TestStorms: a cloud that does less than it is asked for is not asked ever more, and
// Machines do not wait long once it does all again. In short mode two storms.
func TestStorms(t *testing.T) {
	const (
		machines = 20
		boot     = 20 * time.Second
		soon     = boot + time.Minute
		length   = 3 * time.Minute
		// POSTs for one that is accepted, and for a Machine if none is.
		forAccepted, forMachine = 5, 3
	)
	rows := map[string]Storm{
		"two calls a second":  {Status: 429, Rate: 2},
		"POST is refused":     {Operation: opCreate, Status: 429},
		"POST fails":          {Operation: opCreate, Status: 503},
		"PATCH of NICs fails": {Operation: opPatch, Status: 500},
		"nothing works":       {Status: 503},
	}
	for name, storm := range rows {
		if testing.Short() && name != "two calls a second" && name != "POST is refused" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goOn(t)
			storm.From, storm.For = 15*time.Second, length
			var result StormResult
			synctest.Test(t, func(*testing.T) { result = Endure(storm, machines, boot) })
			t.Logf("%d POSTs in the storm, %d accepted; all Machines ran %s after it; at most %d calls in 10 s", result.Posts, result.Accepted, result.Healed, result.Peak)
			if result.Healed > soon {
				t.Errorf("all Machines ran %s after the storm, want %s", result.Healed, soon)
			}
			if len(result.Violations) > 0 {
				t.Errorf("%s\n%s", strings.Join(result.Violations, "\n"), result.Trace)
			}
			if result.Posts > max(forAccepted*result.Accepted, forMachine*machines) {
				t.Errorf("%d POSTs, of which %d were accepted", result.Posts, result.Accepted)
			}
		})
	}
}
