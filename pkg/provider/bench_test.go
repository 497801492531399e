// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
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

// slowPosts is an API that takes its time for each POST, and then refuses it. Lists are empty.
type slowPosts struct {
	time  time.Duration
	posts atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (s *slowPosts) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}}}
	answer.Body = io.NopCloser(strings.NewReader(`{"items":[]}`))
	if request.Method == http.MethodPost {
		s.posts.Add(1)
		<-time.After(s.time)
		answer.StatusCode = http.StatusConflict
	}
	return answer, nil
}

// heapPeak returns what the heap grows to at most while run runs, in bytes.
func heapPeak(run func()) uint64 {
	runtime.GC()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	peak, done := uint64(0), make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		for {
			metrics.Read(heap)
			peak = max(peak, heap[0].Value.Uint64())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	run()
	close(done)
	sampler.Wait()
	return peak
}

// BenchmarkManyPosts is machines that are created at a time, from one Secret.
func BenchmarkManyPosts(b *testing.B) {
	for name, row := range map[string]struct {
		machines   int
		userData   int
		fromSecret bool
		atMost     float64 // MiB of heap
	}{
		"the longest, of the Secret": {300, 256 << 10, true, 800},
		"the longest, of the class":  {300, 256 << 10, false, 900},
		"16 kB":                      {300, 16_000, true, 100},
	} {
		b.Run(name, func(b *testing.B) {
			silent(b)
			peak := uint64(0)
			for b.Loop() {
				peak = max(peak, heapPeak(func() {
					inVirtualTime(b, func(t *testing.T) {
						r := newRig(t)
						r.driver = provider.NewProvider(&spi.PluginSPIImpl{
							Config: spi.Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Transport: &slowPosts{time: 10 * time.Second},
						}, r.options...)
						userData := bytes.Repeat([]byte("#cloud-config\n"), row.userData/14)
						if r.secret.Data["userData"] = userData; !row.fromSecret {
							r.secret.Data["userData"] = nil
							r.setSpec(func(spec map[string]any) { spec["userData"] = string(userData) })
						}
						var calls sync.WaitGroup
						for i := range row.machines {
							calls.Go(func() {
								_, err := r.driver.CreateMachine(t.Context(), &driver.CreateMachineRequest{
									Machine: machine(fmt.Sprintf("machine-%d", i)), MachineClass: r.class, Secret: r.secret})
								wantCode(t, err, codes.FailedPrecondition)
							})
						}
						calls.Wait()
					})
				}))
			}
			wantAtMost(b, float64(peak)/(1<<20), "MiB", row.atMost)
		})
	}
}
