// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// STACKIT's own driver makes these calls for a creation, whatever its group's size, by the boot time of the server: a
// list, a POST, GETs every 5 s and, after them, the NICs' list and PATCH
// (stackitcloud/machine-controller-manager-provider-stackit 048c093). It deletes with five, and does not wait for a
// proof.
var (
	boots          = []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 150 * time.Second}
	theirCreation  = []float64{9, 12, 18, 37}
	theirDeletion  = 5.0
	figureMachines = []int{1, 3, 5, 10, 50, 200}
)

// Bounds on the calls of a machine of a group that is created, or deleted, at once. No group may need more than
// STACKIT's own driver for a creation.
var (
	creationBounds = map[int][]float64{1: {8, 12, 16, 26}, 200: {3, 3, 3, 3}}
	deletionBounds = map[int]float64{1: 6, 3: 5.5, 5: 5.5, 10: 4, 50: 2.5, 200: 2.3}
)

// TestFigures prints what a few Machines cost in API calls, and many: make bench.
func TestFigures(t *testing.T) {
	const deletion = 10 * time.Second
	var table strings.Builder
	fmt.Fprintf(&table, "API calls a machine; creations with an allowedAddress, by boot time; a deletion takes %s\n",
		deletion)
	fmt.Fprintf(&table, "%10s %8s %8s %8s %8s %10s\n", "machines", boots[0], boots[1], boots[2], boots[3], "deletion")
	for _, n := range figureMachines {
		if testing.Short() && n > 5 { // the race detector needs minutes for the rest
			continue
		}
		fmt.Fprintf(&table, "%10d", n)
		var down float64
		for i, boot := range boots {
			var up float64
			up, down = callsOf(t, n, boot, deletion)
			fmt.Fprintf(&table, " %8.1f", up)
			bound := theirCreation[i]
			if own, ok := creationBounds[n]; ok {
				bound = min(bound, own[i])
			}
			if up > bound {
				t.Errorf("%d machines, a boot of %s: %.1f calls a creation, want at most %.1f", n, boot, up, bound)
			}
			if down > deletionBounds[n] {
				t.Errorf("%d machines: %.1f calls a deletion, want at most %.1f", n, down, deletionBounds[n])
			}
		}
		fmt.Fprintf(&table, " %10.1f\n", down)
	}
	fmt.Fprintf(&table, "%10s %8.0f %8.0f %8.0f %8.0f %10.0f\n", "STACKIT's", theirCreation[0], theirCreation[1],
		theirCreation[2], theirCreation[3], theirDeletion)
	t.Log("\n" + table.String())
}

// callsOf returns what a machine's creation and deletion cost in a group, beside another machine of the cluster.
func callsOf(t *testing.T, machines int, boot, deletion time.Duration) (up, down float64) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, machines, machines, iaasmock.WithBootDuration(boot), iaasmock.WithBootSpread(0),
			iaasmock.WithDeleteDuration(deletion))
		c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		c.makeRunning("stays")
		c.list() // fetches the token
		c.cloud.ResetCalls()
		c.each(func(m *v1alpha1.Machine) {
			response := c.mustCreate(m)
			m.Spec.ProviderID = response.ProviderID
			if err := c.initErr(m); err != nil {
				t.Error(err)
			}
		})
		up = c.callsPerMachine()
		<-time.After(time.Minute)
		c.list()
		c.cloud.ResetCalls()
		c.each(func(m *v1alpha1.Machine) { c.mustDelete(c.deleted(m)) })
		down = c.callsPerMachine()
	})
	return up, down
}
