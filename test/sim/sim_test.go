// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package sim simulates the driver: the real one, with its HTTP chain and the SDK, runs against the mock of the
// cloud in one process, in the virtual time of testing/synctest. A small manager (manager_test.go) makes the calls of
// machine-controller-manager: it forgets what it has written, calls with an old Machine, and crashes.
//
// TestLife takes one Machine from its creation to its deletion, once for each fault at each of its API calls. TestPlans
// draws schedules from seeds: users create and delete Machines, faults hit requests, lists lag, lost requests are
// carried out late, clocks differ, processes crash, the API is down for minutes.
//
// Once the faults of a plan are over, the rules (rules_test.go) judge it:
//
//   - each Machine has one server, which runs with its allowed addresses, and nothing is left of a deleted Machine:
//     no server, no volume, no NIC;
//   - where lists lag and lost requests come late by less than the driver's settle together, there are never two
//     servers of a Machine that could join, and a Machine's deletion ends only once its servers are gone;
//   - nothing of another owner changes, and the running server of a Machine that is to stay is never deleted;
//   - no more POSTs of servers are sent than Machines and faults explain;
//   - an error has a reason, and a code that the faults explain;
//   - all this comes true within a bounded time.
//
// The seed fixes what is drawn. Two runs of a seed may still differ: the driver's pauses after failures are random, and
// Go's scheduler orders what happens at the same instant.
package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
)

var (
	plans = flag.Uint64("plans", 300, "how many plans TestPlans runs")
	seed  = flag.Uint64("seed", 1, "the seed of the first plan; each of the others has the next one")
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // which discards
	simulationKey()               // outside of any bubble: it takes a while
	os.Exit(m.Run())
}

// TestPlans judges the plans of -plans seeds from -seed on; in short mode a tenth of them.
func TestPlans(t *testing.T) {
	count := *plans
	if testing.Short() {
		count = (count + 9) / 10
	}
	for number := *seed; number < *seed+count; number++ {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			judge(t, planOf(number), fmt.Sprintf("-run '^TestPlans$' -seed %d -plans 1", number))
		})
	}
}

// lives are the lives that TestLife disturbs: of a Machine in a cloud whose lists are current, or lag for long, and of
// a Machine from OpenStack.
var lives = map[string]plan{
	"current lists": {machines: 1}, "old lists": {machines: 1, lag: 20 * time.Second},
	"from OpenStack": {fromOpenStack: true, lag: 5 * time.Second},
}

// TestLife takes one Machine through its life for each fault at each API call of an undisturbed life; in short mode
// at the first call of each operation.
func TestLife(t *testing.T) {
	for name, life := range lives {
		life.seed, life.period, life.late, life.forgets = 1, 2*time.Minute, 6*time.Second, 0.5
		life.boot, life.deletion, life.latency = 2*time.Second, 2*time.Second, 10*time.Millisecond
		for operation, calls := range judge(t, life, "-run TestLife") {
			if testing.Short() {
				calls = 1
			}
			for nth := range calls {
				for _, f := range faultsOf(operation) {
					run := fmt.Sprintf("%s, %s %d, %s", name, operation, nth, f.name)
					disturbed := life
					disturbed.faults = []planned{{fault: f, operation: operation, nth: nth, times: 1}}
					t.Run(run, func(t *testing.T) {
						t.Parallel()
						judge(t, disturbed, fmt.Sprintf("-run '^%s$'", strings.Replace(t.Name(), "/", "$/^", 1)))
					})
				}
			}
		}
	}
}

// judge runs a plan, and fails the test if it breaks a rule: with the command that runs it again alone, and the name
// of a file that has what happened. It returns how often each operation was called.
func judge(t *testing.T, p plan, again string) map[string]int {
	t.Helper()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, p)
		w.run()
	})
	if len(w.broken) > 0 {
		file := filepath.Join(os.TempDir(), "sim-"+strings.ReplaceAll(t.Name(), "/", "-")+".trace")
		w.trace = append([]string{fmt.Sprintf("%+v", p)}, w.trace...)
		_ = os.WriteFile(file, []byte(strings.Join(w.trace, "\n")), 0o600)
		t.Errorf("seed %d:\n%s\nwhat happened: %s\nagain: go test ./test/sim %s",
			p.seed, strings.Join(w.broken, "\n"), file, again)
	}
	return w.counts
}
