// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

// TestEveryPointOfALife lets everything go wrong at each API call and each write of the manager
// in a Machine's life, one at a time.
func TestEveryPointOfALife(t *testing.T) {
	for _, life := range Lives {
		calm := live(t, life)
		if len(calm.Violations) > 0 || calm.Calls < 5 {
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

// TestLivesAreAlike: nothing decides how a Machine's life goes but the length of calls, and nothing of a
// process is left when it has ended. In short mode 10 lives.
func TestLivesAreAlike(t *testing.T) {
	lives := 100
	if testing.Short() {
		lives = 10
	}
	first, goroutines := live(t, Lives[0]), runtime.NumGoroutine()
	for i := 1; i < lives && !t.Failed(); i++ {
		if again := live(t, Lives[0]); again.Trace != first.Trace {
			t.Errorf("life %d: %s", i, firstDifference(first.Trace, again.Trace))
		}
	}
	if left := runtime.NumGoroutine() - goroutines; left > 2 {
		t.Errorf("%d goroutines more after %d lives", left, lives)
	}
}

func TestABroadcasterThatIsNotFoundIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := manager.EndBroadcasters(1); err == nil {
			t.Error("none is there, and one was expected")
		}
	})
}

// TestACalmLifeIsCheap bounds the API calls of a Machine to which nothing happens, six for three
// orphan runs among them.
func TestACalmLifeIsCheap(t *testing.T) {
	const atMost = 19
	if result := live(t, Lives[0]); result.Calls > atMost {
		t.Errorf("%d API calls, want at most %d:\n%s", result.Calls, atMost, result.Trace)
	}
}

// endure takes 20 Machines through a storm, which all must run within so long.
func endure(t *testing.T, storm Storm, soon time.Duration) (result StormResult) {
	t.Helper()
	t.Parallel()
	goOn(t)
	synctest.Test(t, func(*testing.T) { result = Endure(storm, stormMachines, stormBoot) })
	t.Logf("%d POSTs in the storm, %d accepted; all Machines ran after %s", result.Posts, result.Accepted, result.Healed)
	if len(result.Violations) > 0 || result.Healed > soon {
		t.Errorf("all Machines ran after %s, want %s\n%s\n%s",
			result.Healed, soon, strings.Join(result.Violations, "\n"), result.Trace)
	}
	return result
}

const (
	stormMachines = 20
	stormBoot     = 20 * time.Second
)

// TestListsFailWhileReadsWork: who waits for a server needs no list, and who looks
// for one none but that of its Machine. In short mode with one status.
func TestListsFailWhileReadsWork(t *testing.T) {
	statuses := []int{503, 500, 502, 504}
	if testing.Short() {
		statuses = statuses[:1]
	}
	for name, storm := range map[string]Storm{
		"lists of many Machines fail":           {Wide: true},
		"all lists fail once servers were made": {From: 3 * time.Second},
	} {
		for _, status := range statuses {
			t.Run(fmt.Sprintf("%s with %d", name, status), func(t *testing.T) {
				storm.Operation, storm.Status, storm.For = opList, status, 6*time.Minute
				endure(t, storm, time.Minute)
			})
		}
	}
}

// TestStorms: a cloud that does less than it is asked for is not asked ever more, and
// Machines do not wait long once it does all again. In short mode two storms.
func TestStorms(t *testing.T) {
	// POSTs for one that is accepted, and for a Machine if none is.
	const forAccepted, forMachine = 5, 3
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
			storm.For = 3 * time.Minute
			result := endure(t, storm, storm.For+stormBoot+time.Minute)
			if result.Posts > max(forAccepted*result.Accepted, forMachine*stormMachines) {
				t.Errorf("%d POSTs, of which %d were accepted", result.Posts, result.Accepted)
			}
		})
	}
}
