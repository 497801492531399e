// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
