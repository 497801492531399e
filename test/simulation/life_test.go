// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// TestEveryPointOfALife lets everything go wrong at each API call and each driver
// answer of a Machine's life, one at a time.
func TestEveryPointOfALife(t *testing.T) {
	for _, life := range Lives {
		calm, operations := live(t, life, Disturbance{})
		if len(calm.Violations) > 0 || calm.Answers < 5 {
			t.Fatalf("without any disturbance: %v\n%s", calm.Violations, calm.Trace)
		}
		var all []Disturbance
		for i, operation := range operations {
			all = append(all, DisturbancesOf(i+1, operation)...)
		}
		for i := range calm.Answers {
			all = append(all, DisturbancesOfAnswer(i+1)...)
		}
		t.Logf("%s: %d API calls, %d driver answers, %d lives", life.name, len(operations), calm.Answers, len(all))
		for i := 0; i < len(all); i += *nth {
			t.Run(fmt.Sprintf("%s, %s", life.name, all[i]), func(t *testing.T) {
				t.Parallel()
				goOn(t)
				result, _ := live(t, life, all[i])
				if len(result.Violations) > 0 {
					t.Errorf("%s\n%s", strings.Join(result.Violations, "\n"), result.Trace)
				}
			})
		}
	}
}

func live(t *testing.T, life Life, d Disturbance) (result Result, operations []string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { result, operations = Live(life, d) })
	return result, operations
}

// TestACalmLifeIsCheap bounds the API calls of a Machine to which nothing happens.
func TestACalmLifeIsCheap(t *testing.T) {
	result, operations := live(t, Lives[0], Disturbance{})
	const atMost = 17
	if len(operations) > atMost {
		t.Errorf("%d API calls, want at most %d:\n%s", len(operations), atMost, result.Trace)
	}
}
