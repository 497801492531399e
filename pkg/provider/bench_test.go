// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"

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

// inVirtualTime runs a part of a benchmark in a bubble, which takes a test.
func inVirtualTime(b *testing.B, run func(t *testing.T)) {
	b.Helper()
	ran := false
	whatever := func(string, string) (bool, error) { return true, nil }
	passed := testing.RunTests(whatever, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) {
		if !ran { // -count is for the benchmark
			ran = true
			synctest.Test(t, run)
		}
	}}})
	if !passed {
		b.FailNow()
	}
}

// wantAtMost reports a figure, and fails if it is more than it may be.
func wantAtMost(b *testing.B, figure float64, unit string, atMost float64) {
	b.Helper()
	b.ReportMetric(figure, unit)
	if figure > atMost {
		b.Errorf("%.2f %s, want at most %.2f", figure, unit, atMost)
	}
}

// calls is the number of API calls since the count was reset.
func (r *rig) calls() float64 {
	total := 0
	for _, count := range r.cloud.CallCounts() {
		total += count
	}
	return float64(total)
}

// BenchmarkMachine is the life of one machine after another.
func BenchmarkMachine(b *testing.B) {
	const lives = 10
	for name, addresses := range map[string][]any{"plain": nil, "allowedAddresses": {"100.64.0.0/12"}} {
		b.Run(name, func(b *testing.B) {
			silent(b)
			b.ReportAllocs()
			calls := 0.0
			for b.Loop() {
				inVirtualTime(b, func(t *testing.T) {
					r := newRig(t)
					r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = addresses })
					for i := range lives {
						m := machine(fmt.Sprintf("machine-%d", i))
						m.Spec.ProviderID = r.mustCreate(m).ProviderID
						if _, err := r.initialize(m); err != nil {
							t.Fatal(err)
						}
						if _, err := r.status(m); err != nil {
							t.Fatal(err)
						}
						r.mustRemove(m)
					}
					calls = r.calls() / lives
				})
			}
			// A boot of 10 s and a deletion of 5 s, both read every second.
			wantAtMost(b, calls, "calls/machine", 23)
		})
	}
}

// BenchmarkListMachines is what an orphan run costs in a large cluster. It passes in
// real time, and most of it waits: lists keep a distance.
func BenchmarkListMachines(b *testing.B) {
	for _, size := range []int{100, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			silent(b)
			r := newRig(b, iaasmock.WithBootDuration(0))
			for i := range size {
				r.makeServer(fmt.Sprintf("machine-%d", i), nil)
			}
			r.list() // fetches the token
			r.cloud.ResetCalls()
			b.ReportAllocs()
			runs := 0.0
			for b.Loop() {
				response, err := r.driver.ListMachines(b.Context(), &driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
				if err != nil || len(response.MachineList) != size {
					b.Fatalf("%d machines, %v", len(response.MachineList), err)
				}
				runs++
			}
			wantAtMost(b, r.calls()/runs, "calls/op", 1)
		})
	}
}
