// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// silent keeps the log out of what is measured.
func silent(b *testing.B) {
	b.Helper()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	b.Cleanup(func() { klog.LogToStderr(true) })
}

// reportCalls reports the API calls since the count was reset, and fails if there
// were more.
func (r *rig) reportCalls(b *testing.B, times int, unit string, atMost float64) {
	b.Helper()
	total := 0
	for _, count := range r.cloud.CallCounts() {
		total += count
	}
	calls := float64(total) / float64(times)
	b.ReportMetric(calls, unit)
	if calls > atMost {
		b.Errorf("%.2f %s, want at most %.2f", calls, unit, atMost)
	}
}

// BenchmarkMachine is the life of one machine alone. What counts are its calls and
// allocations: most of its time goes by until the clock sees that somebody waits.
func BenchmarkMachine(b *testing.B) {
	for name, addresses := range map[string][]any{"plain": nil, "allowedAddresses": {"100.64.0.0/12"}} {
		b.Run(name, func(b *testing.B) {
			silent(b)
			r := newRig(b)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = addresses })
			r.cloud.ResetCalls()
			b.ReportAllocs()
			lives := 0
			for b.Loop() {
				m := machine(fmt.Sprintf("machine-%d", lives))
				m.Spec.ProviderID = r.mustCreate(m).ProviderID
				if _, err := r.initialize(m); err != nil {
					b.Fatal(err)
				}
				if _, err := r.status(m); err != nil {
					b.Fatal(err)
				}
				if err := r.delete(r.deleted(m)); err != nil {
					b.Fatal(err)
				}
				lives++
			}
			// The first reads every second while it boots (5 to 10 s) and goes (5 s): 19, and
			// 21 with addresses.
			r.reportCalls(b, lives, "calls/machine", 23)
		})
	}
}

// BenchmarkListMachines is what an orphan run costs in a large cluster.
func BenchmarkListMachines(b *testing.B) {
	for _, size := range []int{100, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			silent(b)
			r := newRigInMemory(b, iaasmock.WithBootDuration(0))
			for i := range size {
				r.makeServer(fmt.Sprintf("machine-%d", i), nil)
			}
			r.cloud.ResetCalls()
			b.ReportAllocs()
			runs := 0
			for b.Loop() {
				response, err := r.driver.ListMachines(b.Context(), &driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
				if err != nil || len(response.MachineList) != size {
					b.Fatalf("%d machines, %v", len(response.MachineList), err)
				}
				runs++
			}
			r.reportCalls(b, runs, "calls/op", 1)
		})
	}
}
