// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"context"
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

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
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

// BenchmarkManyPosts is machines that are created at a time, from one Secret. 300 with 1.2 MB
// of user data took 3 GiB.
func BenchmarkManyPosts(b *testing.B) {
	for name, row := range map[string]struct {
		machines   int
		userData   int
		fromSecret bool
		atMost     float64 // MiB of heap
	}{
		"1.2 MB of the Secret": {300, 1_200_000, true, 400},
		"1.2 MB of the class":  {100, 1_200_000, false, 400},
		"16 kB":                {300, 16_000, true, 100},
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

// A creation that ends while it waits for the memory of others has sent nothing: the next one
// need not look for its server.
func TestAPOSTThatWaitsForMemoryIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, api := newRig(t), &slowPosts{time: 20 * time.Second}
		r.driver = provider.NewProvider(&spi.PluginSPIImpl{Config: spi.Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Transport: api}, r.options...)
		r.secret.Data["userData"] = bytes.Repeat([]byte("#cloud-config\n"), 1<<20) // as much as all may have
		create := func(m *v1alpha1.Machine, timeout time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
			return err
		}
		first := start(func() error { return create(machine("first"), time.Minute) })
		<-time.After(5 * time.Second)
		late := machine("late")
		wantCode(t, create(late, 10*time.Second), codes.DeadlineExceeded)
		if posts := api.posts.Load(); posts != 1 {
			t.Errorf("%d POSTs, want 1: the other one waits", posts)
		}
		wantCode(t, <-first, codes.FailedPrecondition)
		began := time.Now()
		wantCode(t, create(late, time.Minute), codes.FailedPrecondition)
		if took := time.Since(began); took > api.time+time.Second {
			t.Errorf("the next call takes %s, want %s: it looks for a server", took, api.time)
		}
	})
}
