// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/simulation/manager"
)

var (
	seeds = flag.Int("seeds", 0, "how many seeds to run; 0 means 300, with -short 5")
	nth   = flag.Int("nth", 0, "run every n-th life of those in which one thing goes wrong; "+
		"0 means every 28th, with -short every 140th")
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "0") // rapid has it
	flag.Parse()
	debug.SetGCPercent(400) // little is alive, and much is made
	setDefault(seeds, 300, 5)
	setDefault(nth, 28, 140)
	ListenToLogs()
	if err := manager.AllowMany(); err != nil {
		panic(err)
	}
	simulationKeys() // outside of any bubble
	secrets()
	routes()
	os.Exit(m.Run())
}

// setDefault sets a flag that was not given.
func setDefault(value *int, full, short int) {
	if *value == 0 && testing.Short() {
		*value = short
	}
	if *value == 0 {
		*value = full
	}
}

var someFailed atomic.Bool

// goOn lets -failfast skip parallel tests, too, once one has failed.
func goOn(t *testing.T) {
	t.Helper()
	if someFailed.Load() && flag.Lookup("test.failfast").Value.String() == "true" {
		t.Skip("another failed")
	}
	t.Cleanup(func() {
		if t.Failed() {
			someFailed.Store(true)
		}
	})
}

func simulate(t *testing.T, plan Plan) (result Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result = Run(plan) })
	return result
}

// TestSeeds runs the plans of seeds.
func TestSeeds(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			goOn(t)
			plan := Plans.Example(seed + 1)
			report(t, &plan, simulate(t, plan), fmt.Sprintf("-run 'TestPlan$' -rapid.checks=1 -rapid.seed=%d", seed+1))
		})
	}
}

// TestPlan is rapid's: it runs the plans again that failed once and are kept in testdata, and draws
// -rapid.checks others, from -rapid.seed on. One that fails is made smaller, and kept.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := Plans.Draw(rt, "plan")
		rapid.SyncTest(rt, func(rt *rapid.T) { report(rt, &plan, Run(plan), "-run 'TestPlan$'") })
	})
}

// report fails the test if something must not have been, and says how to see it again. The error is the same
// each time, as rapid wants it.
func report(t rapid.TB, what any, result Result, again string) {
	t.Helper()
	if len(result.Violations) == 0 {
		return
	}
	// Where many Machines wait together a seed may pass the next time.
	file := filepath.Join(os.TempDir(), fmt.Sprintf("simulation-%x.trace", fnvHash(again)))
	if err := os.WriteFile(file, []byte(result.Trace), 0o600); err != nil {
		t.Log(err)
	}
	t.Logf("%s\nwhat happened: %s\nagain: GOMAXPROCS=1 go test ./test/simulation %s",
		strings.Join(result.Violations, "\n"), file, again)
	t.Errorf("violations in %v", what)
}

// TestMostSeedsRepeatThemselves compares the traces of two runs of each plan, on one processor: about a
// fiftieth differs (package doc says where), a tenth may. The race detector, with which the short mode
// runs, lets most of them differ: see TestLivesAreAlike.
func TestMostSeedsRepeatThemselves(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector lets goroutines go on in a random order")
	}
	const count = 20
	if found := differences(t, count); len(found) > count/10 {
		t.Errorf("%d of %d plans run differently each time:\n%s", len(found), count, strings.Join(found, "\n"))
	}
}

// differences runs the plans of the first seeds twice each. Two runs may part where another program has
// interrupted one of them, so a plan counts that parts three times.
func differences(t *testing.T, count int) (found []string) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range count {
		plan := Plans.Example(i + 1)
		first, second := simulate(t, plan), simulate(t, plan)
		for tries := 1; first.Trace != second.Trace; tries++ {
			if tries == 3 {
				found = append(found, fmt.Sprintf("seed %d: %s", i+1, firstDifference(first.Trace, second.Trace)))
				break
			}
			first, second = simulate(t, plan), simulate(t, plan)
		}
	}
	return found
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("the runs part in line %d:\n%s\n%s", i, as[i], bs[i])
		}
	}
	return fmt.Sprintf("one run has %d events, the other %d", len(as), len(bs))
}
