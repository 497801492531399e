// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run this seed only; with -v, show what happened")
	seeds   = flag.Int("seeds", 0, "how many seeds to run; 0 means 50, with -short 5")
	nth     = flag.Int("nth", 0, "run every n-th life of those in which one thing goes wrong; 0 means every 7th, with -short every 140th")
	soak    = flag.Bool("soak", false, "run seeds from the clock until something is found, or -timeout")
)

func TestMain(m *testing.M) {
	flag.Parse()
	setDefault(seeds, 50, 5)
	setDefault(nth, 7, 140)
	ListenToLogs()
	simulationKeys() // outside of any bubble
	secrets()
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

// TestSeeds runs random schedules.
func TestSeeds(t *testing.T) {
	if *oneSeed != 0 {
		plan := NewPlan(*oneSeed)
		result := simulate(t, plan)
		if testing.Verbose() {
			t.Logf("%s\n%s\n%d API calls, %d Machines, well after %s", &plan, result.Trace, result.Calls, result.Machines, result.Healed)
		}
		report(t, &plan, result, bySeed(&plan))
		return
	}
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			goOn(t)
			plan := NewPlan(seed + 1)
			report(t, &plan, simulate(t, plan), bySeed(&plan))
		})
	}
}

// TestEveryPreset lets each preset of the mock hold for a while; in short mode every third.
func TestEveryPreset(t *testing.T) {
	for i, preset := range iaasmock.Presets() {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(preset.Name, func(t *testing.T) {
			t.Parallel()
			goOn(t)
			plan := Plan{Seed: 7, Clusters: 2, Machines: 3, FaultPeriod: 5 * time.Minute, Collects: true, Boot: 10 * time.Second,
				Deletion: 5 * time.Second, Latency: 50 * time.Millisecond, Preset: preset.Name}
			if testing.Short() {
				plan.Clusters, plan.Machines, plan.FaultPeriod = 1, 2, time.Minute
			}
			report(t, &plan, simulate(t, plan), "-run 'TestEveryPreset/"+preset.Name+"$'")
		})
	}
}

// TestSoak runs new seeds each time.
func TestSoak(t *testing.T) {
	if !*soak {
		t.SkipNow()
	}
	first := uint64(time.Now().UnixNano())
	for seed := first; !t.Failed(); seed++ {
		if deadline, ok := t.Deadline(); ok && time.Until(deadline) < time.Minute {
			t.Logf("%d seeds from %d", seed-first, first)
			return
		}
		plan := NewPlan(seed)
		report(t, &plan, simulate(t, plan), bySeed(&plan))
	}
}

func bySeed(plan *Plan) string { return fmt.Sprintf("-run 'TestSeeds$' -seed=%d", plan.Seed) }

// report fails the test if something must not have been, and says how to see it
// again.
func report(t *testing.T, plan *Plan, result Result, again string) {
	t.Helper()
	if len(result.Violations) == 0 {
		return
	}
	// Where many Machines wait together a seed may pass the next time.
	file := filepath.Join(os.TempDir(), fmt.Sprintf("simulation-%d.trace", plan.Seed))
	if err := os.WriteFile(file, []byte(result.Trace), 0o600); err != nil {
		t.Log(err)
	}
	t.Errorf("%s\n%s\nwhat happened: %s\nagain: GOMAXPROCS=1 go test ./test/simulation -v %s",
		plan, strings.Join(result.Violations, "\n"), file, again)
}

// TestASeedRepeatsItself compares the traces of two runs. Of one cluster with one
// Machine and without crashes, pauses, orphan runs and faults of single requests: where several
// wait for the same list, for the next read or for the end of a Retry-After (as a list does beside
// the read that failed or hangs), or a crash or the end of a pause concerns all at once, which goes
// on first is the scheduler's choice.
func TestASeedRepeatsItself(t *testing.T) {
	count := uint64(20)
	if testing.Short() {
		count = 4
	}
	for seed := range count {
		plan := NewPlan(seed + 1)
		plan.Clusters, plan.Machines, plan.Crashes, plan.Probabilities.CrashAtAnswer, plan.Probabilities.CrashAtRequest = 1, 1, 0, 0, 0
		plan.Origins = nil // each is one more Machine
		plan.Pauses, plan.Probabilities.Pause, plan.Collects = 0, 0, false
		plan.Probabilities.Fault, plan.Probabilities.Vanish = 0, 0
		first, second := simulate(t, plan), simulate(t, plan)
		if first.Trace != second.Trace {
			t.Errorf("seed %d: %s", seed+1, firstDifference(first.Trace, second.Trace))
		}
		if first.Calls == 0 {
			t.Errorf("seed %d: nothing happened", seed+1)
		}
	}
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
