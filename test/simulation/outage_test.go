// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
