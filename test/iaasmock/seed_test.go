// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// randomRun returns the random results of 60 calls: delays, statuses, IDs.
func randomRun(t *testing.T, seed uint64) []string {
	t.Helper()
	m := instantMock(t, iaasmock.WithSeed(seed), iaasmock.WithLatency(0, time.Second),
		iaasmock.WithBootSpread(2*time.Minute), iaasmock.WithListReplicas(0, time.Hour))
	if got := m.cloud.Seed(); got != seed {
		t.Errorf("the seed is %d, want %d", got, seed)
	}
	m.inject("unavailable", object{"operation": "ListServers", "probability": 0.5})
	m.inject("no-capacity", object{"probability": 0.5})
	m.inject("brown-out", object{"operation": "CreateServer", "probability": 0.5, "duration": "24h"})
	var results []string
	for range 30 {
		_, listed, err := m.try("GET", inRegion+"/servers", nil)
		if err != nil {
			t.Fatal(err)
		}
		last := func() iaasmock.Call { return m.cloud.Calls()[len(m.cloud.Calls())-1] }
		results = append(results, fmt.Sprint(last().Duration, last().Status, strings.Count(string(listed), `"name"`)))
		_, raw, err := m.try("POST", inRegion+"/servers", serverBody(nil))
		if err != nil {
			t.Fatal(err)
		}
		var made struct{ ID string }
		if err := json.Unmarshal(raw, &made); err != nil {
			t.Fatal(err)
		}
		m.clock.Step(time.Minute)
		server := m.server(made.ID)
		mac := m.cloud.NICs()[1].MAC
		results = append(results, fmt.Sprint(last().Duration, last().RequestID, made.ID, server.Status, mac))
	}
	return results
}

func TestSameSeedRepeatsARun(t *testing.T) {
	first, second, third := randomRun(t, 42), randomRun(t, 42), randomRun(t, 43)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same seed gives other results (-first +second):\n%s", diff)
	}
	for i := range first {
		if first[i] == third[i] {
			t.Errorf("another seed gives the same result: %s", first[i])
		}
	}
	if one, other := iaasmock.New(), iaasmock.New(); one.Seed() == other.Seed() {
		t.Error("two clouds without a seed have the same")
	}
}

// Which calls a fault hits must not change with calls that it is not for, and
// faults must not all hit at once.
func TestFaultsHitIndependently(t *testing.T) {
	run := func(others bool) (hits, otherHits []int) {
		m := openMock(t, iaasmock.WithSeed(42))
		m.inject("unavailable", object{"operation": "ListServers", "probability": 0.3})
		m.inject("unavailable", object{"operation": "ListNetworks", "probability": 0.3})
		for range 50 {
			hits = append(hits, m.status("GET", inRegion+"/servers", nil))
			if others {
				otherHits = append(otherHits, m.status("GET", inRegion+"/networks", nil))
			}
		}
		return hits, otherHits
	}
	alone, _ := run(false)
	together, others := run(true)
	if diff := cmp.Diff(alone, together); diff != "" {
		t.Errorf("other calls change it (-alone +together):\n%s", diff)
	}
	if cmp.Equal(together, others) {
		t.Error("two faults always hit together")
	}
}
