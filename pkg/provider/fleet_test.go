// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// fleet is the rig with many machines, which workers take through the calls that
// the manager makes. It lives in synctest's time.
type fleet struct {
	*rig
	machines []*v1alpha1.Machine
	workers  int

	mu   sync.Mutex
	took map[string]time.Duration
}

// many is how many machines a test with many of them has: a tenth in short mode. The race
// detector makes the full size take minutes.
func many(machines int) int {
	if testing.Short() {
		return machines / 10
	}
	return machines
}

func newFleet(t testing.TB, machines, workers int, options ...iaasmock.Option) *fleet {
	t.Helper()
	c := &fleet{rig: newRig(t, append([]iaasmock.Option{
		iaasmock.WithBootDuration(12 * time.Second), iaasmock.WithBootSpread(3 * time.Second),
		iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond),
	}, options...)...), workers: workers, took: map[string]time.Duration{}}
	for i := range machines {
		c.machines = append(c.machines, machine(fmt.Sprintf("machine-%04d", i)))
	}
	return c
}

// each lets the workers run f for every machine.
func (c *fleet) each(f func(*v1alpha1.Machine)) {
	todo := make(chan *v1alpha1.Machine)
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for m := range todo {
				f(m)
			}
		})
	}
	for _, m := range c.machines {
		todo <- m
	}
	close(todo)
	workers.Wait()
}

// bringUp is what the manager does until it waits for the node: the look-up, the
// creation, the initialization, and the status once more.
func (c *fleet) bringUp(m *v1alpha1.Machine) {
	start := time.Now()
	if _, err := c.status(m); err == nil {
		c.t.Errorf("%s is there already", m.Name)
	}
	response := c.mustCreate(m)
	m.Spec.ProviderID = response.ProviderID
	if _, err := c.initialize(m); err != nil {
		c.t.Errorf("InitializeMachine: %v", err)
	}
	c.mu.Lock()
	c.took[m.Name] = time.Since(start)
	c.mu.Unlock()
	if _, err := c.status(m); err != nil {
		c.t.Errorf("GetMachineStatus: %v", err)
	}
}

// callsPerMachine counts from the last time it was called.
func (c *fleet) callsPerMachine() float64 {
	c.t.Helper()
	total := 0
	counts := c.cloud.CallCounts()
	for _, count := range counts {
		total += count
	}
	c.cloud.ResetCalls()
	c.t.Logf("%d machines: %v", len(c.machines), counts)
	return float64(total) / float64(len(c.machines))
}

// overBoot are the times from the first call to the initialized server, without
// what the server itself took to boot, in the order of the machines.
func (c *fleet) overBoot() []time.Duration {
	boots := map[string]time.Duration{}
	for _, server := range c.cloud.Servers() {
		boots[server.Name] = server.LaunchedAt.Sub(server.CreatedAt)
	}
	var over []time.Duration
	for _, m := range c.machines {
		over = append(over, c.took[m.Name]-boots[m.Name])
	}
	return over
}

// afterTurn is for how long a read that has had its turn may wait: for itself and one write, each a
// fiftieth of a second by the process's rate limit.
const afterTurn = 2 * time.Second / 50

// peakReads is the greatest number of lists and GETs that the cloud saw begin within a second that
// is shorter by afterTurn.
func (c *fleet) peakReads() int {
	var began []time.Time
	for _, call := range c.cloud.Calls() {
		if call.Method == http.MethodGet {
			began = append(began, call.StartedAt)
		}
	}
	slices.SortFunc(began, time.Time.Compare)
	peak, first := 0, 0
	for last := range began {
		for began[last].Sub(began[first]) >= time.Second-afterTurn {
			first++
		}
		peak = max(peak, last-first+1)
	}
	return peak
}

// wantFewCalls checks the calls since it was last called: how many begin within a second, and for each machine.
func (c *fleet) wantFewCalls(phase string, atMost float64) {
	c.t.Helper()
	if peak := c.peakReads(); peak >= 10 {
		c.t.Errorf("%s: %d reads within a second", phase, peak)
	}
	if calls := c.callsPerMachine(); calls > atMost {
		c.t.Errorf("%s: %.2f calls a machine, want at most %.1f", phase, calls, atMost)
	}
}

// together calls f for each of the machines at a time, and returns the errors.
func together(machines []*v1alpha1.Machine, f func(m *v1alpha1.Machine) error) []error {
	var results []<-chan error
	for _, m := range machines {
		results = append(results, start(func() error { return f(m) }))
	}
	errs := make([]error, len(results))
	for i, result := range results {
		errs[i] = <-result
	}
	return errs
}

// wantNone checks that none of the calls failed.
func wantNone(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func machines(n int) []*v1alpha1.Machine {
	var all []*v1alpha1.Machine
	for i := range n {
		all = append(all, machine(fmt.Sprint("machine-", i)))
	}
	return all
}

// createAndName calls CreateMachine, and sets the ProviderID.
func (r *rig) createAndName(m *v1alpha1.Machine) error {
	response, err := r.create(m)
	if err == nil {
		m.Spec.ProviderID = response.ProviderID
	}
	return err
}

// What a machine costs among 200 that 50 workers bring up and down, and how long. Servers take 8 s to go: 32 s at
// least. Where a whole cluster goes its list is empty in the end, and an empty list proves nothing without a GET:
// the last 50 servers need one each, 8 a second.
func TestManyMachinesNeedFewCalls(t *testing.T) {
	for name, row := range map[string]struct {
		allowed []any
		up      float64 // calls a machine
		whole   bool    // no other server of the cluster stays
		within  time.Duration
		down    float64
	}{
		"with allowedAddresses, and a restart": {[]any{"100.64.0.0/12"}, 2.5, false, 43 * time.Second, 1.4},
		"without, and all servers go":          {nil, 1.5, true, 50 * time.Second, 1.6},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleet(t, many(200), many(50), iaasmock.WithDeleteDuration(8*time.Second))
			c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = row.allowed })
			c.each(c.bringUp)
			if got := len(c.cloud.Servers()); got != len(c.machines) {
				t.Errorf("%d servers for %d machines", got, len(c.machines))
			}
			over := slices.Sorted(slices.Values(c.overBoot()))
			median, p99 := over[len(over)/2], over[len(over)-1-len(over)/100]
			t.Logf("took over the boot of the server: median %s, p99 %s", median, p99)
			isFull := !testing.Short() // fewer machines share fewer reads: the bounds are those of 200
			if isFull {
				c.wantFewCalls("up", row.up)
			}
			// The last ones of a group share with few: their own polls are 4 s apart.
			if isFull && (median > 2*time.Second || p99 > 5*time.Second) {
				t.Errorf("took over the boot of the server: median %s, p99 %s", median, p99)
			}
			if !row.whole {
				c.makeRunning("stays-0001")
				c.restartNow()
			}
			<-time.After(time.Minute)
			c.cloud.ResetCalls()
			began := time.Now()
			c.each(c.mustRemove)
			t.Logf("they went within %s", time.Since(began))
			if isFull {
				wantWithin(t, began, row.within)
				c.wantFewCalls("down", row.down)
			}
		})
	}
}

// BenchmarkListMachines is what an orphan run costs in a large cluster: one API call. It passes in
// real time, and most of it waits: lists keep a distance.
func BenchmarkListMachines(b *testing.B) {
	klog.LogToStderr(false) // nor what is logged is measured
	klog.SetOutput(io.Discard)
	b.Cleanup(func() { klog.LogToStderr(true) })
	for _, size := range []int{100, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := newRig(b, iaasmock.WithBootDuration(0))
			for i := range size {
				r.makeServer(fmt.Sprintf("machine-%d", i), nil)
			}
			r.list() // fetches the token
			r.cloud.ResetCalls()
			b.ReportAllocs()
			runs := 0
			for b.Loop() {
				if listed := r.list(); len(listed) != size {
					b.Fatalf("%d machines", len(listed))
				}
				runs++
			}
			r.wantCalls("ListServers", runs)
		})
	}
}
