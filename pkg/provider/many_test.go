// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// crowd is the rig with many machines, which workers take through the calls that
// the manager makes. It lives in synctest's time.
type crowd struct {
	*rig
	machines []*v1alpha1.Machine
	workers  int

	mu   sync.Mutex
	took map[string]time.Duration
}

func newCrowd(t testing.TB, machines, workers int, options ...iaasmock.Option) *crowd {
	t.Helper()
	c := &crowd{rig: newRigInMemory(t, append([]iaasmock.Option{
		iaasmock.WithBootDuration(12 * time.Second), iaasmock.WithBootSpread(3 * time.Second),
		iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond),
	}, options...)...), workers: workers, took: map[string]time.Duration{}}
	for i := range machines {
		c.machines = append(c.machines, machine(fmt.Sprintf("machine-%04d", i)))
	}
	return c
}

// each lets the workers run f for every machine.
func (c *crowd) each(f func(*v1alpha1.Machine)) {
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
func (c *crowd) bringUp(m *v1alpha1.Machine) {
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
func (c *crowd) bringDown(m *v1alpha1.Machine) {
	m = c.deleted(m)
	if _, err := c.driver.GetMachineStatus(c.t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: c.class, Secret: c.secret}); err != nil {
		if decoded, _ := status.FromError(err); decoded.Code() != codes.NotFound {
			c.t.Errorf("GetMachineStatus: %v", err)
		}
	}
	if err := c.delete(m); err != nil {
		c.t.Errorf("DeleteMachine: %v", err)
	}
}

// callsPerMachine counts from the last time it was called.
func (c *crowd) callsPerMachine() float64 {
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
func (c *crowd) overBoot() []time.Duration {
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

// setLater puts the server of that name into a state, after a while.
func (c *crowd) setLater(after time.Duration, name, status, message string) {
	time.AfterFunc(after, func() {
		for _, server := range c.cloud.Servers() {
			if server.Name == name {
				if err := c.cloud.SetServerStatus(server.ID, status, message); err != nil {
					c.t.Error(err)
				}
			}
		}
	})
}

// peakReads is the greatest number of lists and GETs that began within a second.
func (c *crowd) peakReads() int {
	var began []time.Time
	for _, call := range c.cloud.Calls() {
		if call.Method == "GET" {
			began = append(began, call.StartedAt)
		}
	}
	slices.SortFunc(began, time.Time.Compare)
	peak, first := 0, 0
	for last := range began {
		for began[last].Sub(began[first]) >= time.Second {
			first++
		}
		peak = max(peak, last-first+1)
	}
	return peak
}

func TestManyMachinesNeedFewCalls(t *testing.T) {
	for name, row := range map[string]struct {
		addresses []any
		atMost    float64
	}{
		"with allowedAddresses": {[]any{"100.64.0.0/12"}, 4.6},
		"without":               {nil, 2.8},
	} {
		t.Run(name, func(t *testing.T) {
			calls := map[time.Duration]float64{}
			for _, boot := range []time.Duration{12 * time.Second, time.Minute, 3 * time.Minute} {
				synctest.Test(t, func(t *testing.T) {
					c := newCrowd(t, 200, 50, iaasmock.WithBootDuration(boot))
					c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = row.addresses })
					c.each(c.bringUp)
					if got := len(c.cloud.Servers()); got != len(c.machines) {
						t.Errorf("%d servers for %d machines", got, len(c.machines))
					}
					calls[boot] = c.wantFewCalls("up", row.atMost)
					// The first of a class are noticed up to a tenth late, up to 10 s.
					atMost := 2500 * time.Millisecond
					if boot > 12*time.Second {
						atMost = max(atMost, boot/10) + time.Second
					}
					if over := slices.Sorted(slices.Values(c.overBoot())); over[100] > 1200*time.Millisecond || over[198] > atMost {
						t.Errorf("took over the boot of the server: median %s, p99 %s", over[100], over[198])
					}
					if boot > 12*time.Second {
						return
					}
					c.each(c.bringDown)
					c.wantNothingLeft()
					c.wantFewCalls("down", 2.4)
				})
			}
			// Half of it is chance: how the machines part into waves.
			for boot, got := range calls {
				if short := calls[12*time.Second]; got > short+0.5 {
					t.Errorf("%.2f calls a machine with a boot of %s, %.2f with one of 12 s", got, boot, short)
				}
			}
		})
	}
}

// The number of reads a second does not depend on that of the machines.
func TestReadsStayBoundedAtAnySize(t *testing.T) {
	for _, size := range []int{100, 500} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, size, 500, iaasmock.WithBootDuration(20*time.Second))
				c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
				c.each(c.bringUp)
				c.wantFewCalls("up", 4.5)
				c.each(c.bringDown)
				c.wantNothingLeft()
				c.wantFewCalls("down", 2.5)
			})
		})
	}
}

// wantFewCalls checks the calls since it was last called, and returns how many a
// machine needed.
func (c *crowd) wantFewCalls(phase string, atMost float64) float64 {
	c.t.Helper()
	if peak := c.peakReads(); peak >= 10 {
		c.t.Errorf("%s: %d reads within a second", phase, peak)
	}
	calls := c.callsPerMachine()
	if calls > atMost {
		c.t.Errorf("%s: %.2f calls a machine, want at most %.1f", phase, calls, atMost)
	}
	return calls
}

// 500 machines are waited for at once: one list serves them all.
func TestManyWaitersReadTogether(t *testing.T) {
	for name, row := range map[string]struct {
		known      bool
		from, till time.Duration
	}{
		"of a class never seen":            {false, 15 * time.Second, 44 * time.Second},
		"of a class whose boots are known": {true, 15 * time.Second, 44 * time.Second},
		"when they may run any moment":     {true, 41 * time.Second, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, 500, 500, iaasmock.WithBootDuration(45*time.Second), iaasmock.WithBootSpread(0))
				if row.known {
					c.bringUp(machine("first-0001"))
				}
				var up sync.WaitGroup
				up.Go(func() { c.each(c.bringUp) })
				<-time.After(row.from)
				c.cloud.ResetCalls()
				began, reads := time.Now(), 0
				<-time.After(row.till - row.from)
				for _, call := range c.cloud.Calls() {
					if !call.StartedAt.Before(began) { // the mock notes calls when they end
						reads++
					}
				}
				if steady := (row.till - row.from).Seconds(); float64(reads) > 1.2*steady {
					t.Errorf("%d reads in %.0f s", reads, steady)
				}
				up.Wait()
				c.wantFewCalls("the rest", 4)
			})
		})
	}
}

// The NICs are read while the server boots: if that hangs, the server is looked at
// all the same.
func TestAHangingReadOfNICsDelaysLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1, iaasmock.WithBootDuration(30*time.Second))
		c.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Count: 1, AnswerDelay: 25 * time.Second})
		c.each(c.bringUp)
		var last time.Time
		for _, call := range c.cloud.Calls() {
			if call.Operation != "GetServer" {
				continue
			}
			if pause := call.StartedAt.Sub(last); !last.IsZero() && pause > 6*time.Second {
				t.Errorf("nobody looked at the server for %s", pause)
			}
			last = call.StartedAt
		}
	})
}

// A manager that gives up one machine must not slow down or stop the others.
func TestAReaderThatLeavesDisturbsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 20, 20)
		ctx, cancel := context.WithCancel(t.Context())
		var leaving sync.WaitGroup
		for i := range 20 {
			leaving.Go(func() {
				_, err := c.driver.CreateMachine(ctx, &driver.CreateMachineRequest{
					Machine: machine(fmt.Sprintf("leaving-%04d", i)), MachineClass: c.class, Secret: c.secret})
				wantCode(t, err, codes.Aborted)
			})
		}
		leaving.Go(func() { <-time.After(6500 * time.Millisecond); cancel() })
		c.each(c.bringUp)
		leaving.Wait()
		if over := slices.Max(c.overBoot()); over > 3*time.Second {
			t.Errorf("one took %s over the boot of its server", over)
		}
	})
}

// Machines that come one after another soon read together, too.
func TestMachinesThatComeOneByOneShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 20, 20, iaasmock.WithBootDuration(20*time.Second))
		c.each(func(m *v1alpha1.Machine) {
			<-time.After(time.Duration(slices.Index(c.machines, m)) * 250 * time.Millisecond)
			c.bringUp(m)
		})
		c.wantFewCalls("up", 5)
	})
}

// Those that have waited for a while learn from the first of their class how long
// they still have to.
func TestAWaitUnderWayLearnsFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 4, 4, iaasmock.WithBootDuration(3*time.Minute), iaasmock.WithBootSpread(0))
		c.each(func(m *v1alpha1.Machine) {
			<-time.After(time.Duration(slices.Index(c.machines, m)) * 40 * time.Second)
			c.bringUp(m)
		})
		if over := slices.Max(c.overBoot()[1:]); over > time.Second {
			t.Errorf("one took %s over the boot of its server", over)
		}
	})
}

// Lists may lag: who is not in them yet is read by itself, within the same pace.
func TestManyMachinesInLaggingLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100, 100, iaasmock.WithListLag(20*time.Second), iaasmock.WithBootDuration(5*time.Second))
		c.each(c.bringUp)
		if got := len(c.cloud.Servers()); got != len(c.machines) {
			t.Errorf("%d servers for %d machines", got, len(c.machines))
		}
		c.wantFewCalls("up", 6)
		c.each(c.bringDown)
		c.wantNothingLeft()
	})
}
