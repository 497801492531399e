// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCreateMachineReadsALoneServerSeldomWhileItBoots(t *testing.T) {
	for boot, atMost := range map[time.Duration]int{12 * time.Second: 3, time.Minute: 12, 3 * time.Minute: 26} {
		bubble(t, boot.String(), func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(boot))
			r.mustCreate(machine("m1"))
			reads, server := 0, r.onlyServer()
			for _, call := range r.cloud.Calls() {
				at := call.StartedAt
				if call.Method == http.MethodGet && !at.Before(server.CreatedAt) && at.Before(server.LaunchedAt) {
					reads++
				}
			}
			if t.Logf("%d reads", reads); reads > atMost {
				t.Errorf("%d reads while the server booted, want at most %d", reads, atMost)
			}
		})
	}
}

// What a machine costs among 200 that 50 workers bring up and down, and how long. Servers take 8 s to go: 32 s at
// least. Where a whole cluster goes its list is empty in the end, and an empty list proves nothing without a GET:
// the last 50 servers need one each, 8 a second.
func TestManyMachinesNeedFewCalls(t *testing.T) {
	type addresses = []any
	for name, row := range map[string]struct {
		allowed          addresses
		up               float64 // calls a machine
		restarted, whole bool
		within           time.Duration
		down             float64
	}{
		"with allowedAddresses":       {addresses{"100.64.0.0/12"}, 3.5, false, false, 43 * time.Second, 1.4},
		"without, and a restart":      {nil, 2.5, true, false, 43 * time.Second, 1.4},
		"without, and all servers go": {nil, 2.5, false, true, 50 * time.Second, 1.6},
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
			// The last ones of a group share with few: their own polls are 4 s apart.
			if isFull && (median > 2*time.Second || p99 > 5*time.Second) {
				t.Errorf("took over the boot of the server: median %s, p99 %s", median, p99)
			}
			if isFull {
				c.wantFewCalls("up", row.up)
			}
			if !row.whole { // others of the cluster stay
				c.makeRunning("stays-0001")
			}
			<-time.After(time.Minute)
			if row.restarted {
				c.restartNow()
				<-time.After(time.Minute)
			}
			c.cloud.ResetCalls()
			began := time.Now()
			c.each(func(m *v1alpha1.Machine) { c.mustDelete(c.deleted(m)) })
			t.Logf("they went within %s", time.Since(began))
			if isFull {
				wantWithin(t, began, row.within)
				c.wantFewCalls("down", row.down)
			}
		})
	}
}

// While many machines wait, one list a second serves them all.
func TestOneListASecondServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 50, 50, iaasmock.WithBootDuration(45*time.Second), iaasmock.WithBootSpread(0))
		c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		const begin, steady = 15 * time.Second, 29 * time.Second // all servers are asked for by then
		began := time.Now()
		up := start(func() error { c.each(c.bringUp); return nil })
		<-time.After(begin + steady)
		reads := 0
		for _, call := range c.cloud.Calls() {
			if !call.StartedAt.Before(began.Add(begin)) { // the mock notes calls when they end
				reads++
			}
		}
		if float64(reads) > 1.2*steady.Seconds() {
			t.Errorf("%d reads in %s", reads, steady)
		}
		wantCode(t, <-up, codes.OK)
		wantWithin(t, began, time.Minute)
		c.wantFewCalls("up", 4.5)
	})
}

// Lists that hang, fail or lag hold nobody up: who is not in them is read by itself, within the same pace.
func TestMachinesDoWithoutListsOrWithOldOnes(t *testing.T) {
	type faults = []iaasmock.Fault
	for name, row := range map[string]struct {
		lag    time.Duration
		faults faults
		over   time.Duration // the boot of a server
	}{
		"they lag": {25 * time.Second, nil, 30 * time.Second},
		// A read ends after 20 s.
		"they hang": {0, faults{{Operation: "ListServers", After: 5 * time.Second, Delay: 24 * time.Hour}},
			time.Minute},
		"they answer 500": {0, faults{
			{Operation: "ListServers", After: 3 * time.Second, Status: http.StatusInternalServerError}}, 30 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleet(t, 20, 20, iaasmock.WithListLag(row.lag))
			for _, fault := range row.faults {
				c.cloud.Inject(fault)
			}
			c.each(c.bringUp)
			if over := slices.Max(c.overBoot()); over > row.over {
				t.Errorf("one took %s over the boot of its server", over)
			}
			c.wantFewCalls("up", 12)
			c.cloud.ClearFaults()
			<-time.After(time.Minute)
			c.each(c.bringDown)
			c.wantNothingLeft()
			c.wantCalls("DeleteServer", 20) // what a list shows of a deletion may be old
		})
	}
}

// An empty list may say so with null.
func TestAListWithoutItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: `{"items":null}`})
		if listed := r.list(); len(listed) != 0 {
			t.Errorf("lists %v", listed)
		}
		r.mustRemove(machine("m1"))
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Count: 1, Status: http.StatusOK, Body: `{"items":null}`})
		r.mustCreate(machine("m1"))
		remove()
		r.onlyServer()
	})
}

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

// groupSizes are 1 and, except in short mode, that of a group that shares its reads.
func groupSizes(machines int) []int {
	if testing.Short() {
		return []int{1}
	}
	return []int{1, machines}
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

// bringDown is what the manager does once the node is drained.
func (c *fleet) bringDown(m *v1alpha1.Machine) {
	m = c.deleted(m)
	request := &driver.GetMachineStatusRequest{Machine: m, MachineClass: c.class, Secret: c.secret}
	if _, err := c.driver.GetMachineStatus(c.t.Context(), request); err != nil {
		if decoded, _ := status.FromError(err); decoded.Code() != codes.NotFound {
			c.t.Errorf("GetMachineStatus: %v", err)
		}
	}
	if err := c.delete(m); err != nil {
		c.t.Errorf("DeleteMachine: %v", err)
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
