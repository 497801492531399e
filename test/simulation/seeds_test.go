// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run this seed only, and show what happened")
	seeds   = flag.Int("seeds", defaultSeeds, "how many seeds to run")
	from    = flag.Uint64("from", 1, "the first seed")
)

const defaultSeeds = 200

func TestMain(m *testing.M) {
	flag.Parse()
	ListenToLogs()
	simulationKeys() // outside of any bubble
	secrets()
	os.Exit(m.Run())
}

func simulate(t *testing.T, plan Plan) (result Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result = Run(plan) })
	return result
}

func TestSeeds(t *testing.T) {
	if *oneSeed != 0 {
		plan := NewPlan(*oneSeed)
		result := simulate(t, plan)
		t.Logf("%s\n%s\n%+v", plan.String(), result.Trace, result.Calls)
		report(t, &plan, result)
		return
	}
	for i := range *seeds {
		seed := *from + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			plan := NewPlan(seed)
			report(t, &plan, simulate(t, plan))
		})
	}
}

func report(t *testing.T, plan *Plan, result Result) {
	t.Helper()
	for _, violation := range result.Violations {
		t.Errorf("%s", violation)
	}
	if t.Failed() {
		t.Logf("%s\nto see it again: go test ./test/simulation -run 'TestSeeds$' -seed=%d -v", plan, plan.Seed)
	}
}
