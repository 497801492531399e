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
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

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
