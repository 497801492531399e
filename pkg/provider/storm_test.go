// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Many machines, an API that fails, and a manager that comes back: none of them may make
// it harder for the API to get up again.

// outage is how long the API fails in these tests.
const outage = 5 * time.Minute

// insist calls as the manager does, until it succeeds.
func (c *fleet) insist(call func() error) {
	if err := insist(call); err != nil {
		c.t.Errorf("the manager comes back only after minutes: %v", err)
	}
}

// insistForAll is insist for all machines.
func (c *fleet) insistForAll(call func(*v1alpha1.Machine) error) {
	c.each(func(m *v1alpha1.Machine) { c.insist(func() error { return call(m) }) })
}

func (c *fleet) createIt(m *v1alpha1.Machine) error { return c.createErr(m) }

func (c *fleet) deleteIt(m *v1alpha1.Machine) error { return c.delete(c.deleted(m)) }

// callsAMinute counts the calls of the operation before the end, in each minute since the
// first of them.
func (c *fleet) callsAMinute(operation string, end time.Time) []int {
	var counts []int
	var first time.Time
	for _, call := range c.cloud.Calls() {
		if call.Operation != operation || call.StartedAt.After(end) {
			continue
		}
		if first.IsZero() {
			first, counts = call.StartedAt, make([]int, 1+end.Sub(call.StartedAt)/time.Minute)
		}
		counts[call.StartedAt.Sub(first)/time.Minute]++
	}
	return counts
}

// lastCreation is when the newest server was created.
func (c *fleet) lastCreation() (last time.Time) {
	for _, server := range c.cloud.Servers() {
		if server.CreatedAt.After(last) {
			last = server.CreatedAt
		}
	}
	return last
}

// newFleetInStorm has 50 machines that are called for all at once.
func newFleetInStorm(t *testing.T) *fleet {
	t.Helper()
	return newFleet(t, 50, 50)
}

// A storm of each kind is at most 70 calls in its first minute, and soon 6 a minute.
func TestWritesAndTokensDoNotStorm(t *testing.T) {
	unavailable := iaasmock.Fault{Status: http.StatusServiceUnavailable}
	for name, row := range map[string]struct {
		operation string
		fault     iaasmock.Fault
		up        bool // the machines run when it begins
		call      func(*fleet, *v1alpha1.Machine) error
	}{
		"POST answered 429":   {"CreateServer", iaasmock.Fault{Status: http.StatusTooManyRequests}, false, (*fleet).createIt},
		"POST answered 503":   {"CreateServer", unavailable, false, (*fleet).createIt},
		"POST not answered":   {"CreateServer", iaasmock.Fault{DropBefore: true}, false, (*fleet).createIt},
		"POST that hangs":     {"CreateServer", iaasmock.Fault{Delay: 29 * time.Second, DropBefore: true}, false, (*fleet).createIt},
		"DELETE answered 500": {"DeleteServer", iaasmock.Fault{Status: http.StatusInternalServerError}, true, (*fleet).deleteIt},
		"DELETE answered 503": {"DeleteServer", unavailable, true, (*fleet).deleteIt},
		"PATCH answered 503":  {"UpdateNic", unavailable, false, (*fleet).createIt},
		"tokens answered 503": {"Token", unavailable, false, (*fleet).createIt},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleetInStorm(t)
			c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			if row.up {
				c.insistForAll(c.createIt)
			}
			row.fault.Operation = row.operation
			remove := c.cloud.Inject(row.fault)
			time.AfterFunc(outage, remove)
			c.cloud.ResetCalls()
			start := time.Now()
			c.insistForAll(func(m *v1alpha1.Machine) error { return row.call(c, m) })
			counts := c.callsAMinute(row.operation, start.Add(outage))
			t.Logf("calls a minute: %v; all is done %s after the outage", counts, time.Since(start)-outage)
			later := 4
			if row.operation == "Token" { // no write, but a fetch of its own
				later = 6
			}
			if counts[0] > 70 || slices.Max(counts[2:]) > later {
				t.Errorf("%v calls in five minutes, want at most 70 in the first and %d in each after the second", counts, later)
			}
			if servers := c.serversByName(); !row.up && len(servers) != len(c.machines) {
				t.Errorf("%d machines have servers", len(servers))
			}
		})
	}
}

// When the API is back all servers are asked for soon.
func TestAfterAStormAllPOSTsAreSentSoon(t *testing.T) {
	parts := 10 // of a pause
	if testing.Short() {
		parts = 2
	}
	for status, within := range map[int]time.Duration{
		http.StatusTooManyRequests: 40 * time.Second, http.StatusServiceUnavailable: 45 * time.Second,
	} {
		var slowest time.Duration
		for part := range parts {
			outage := outage + time.Duration(part)*3*time.Second
			bubble(t, fmt.Sprintf("%d for %s", status, outage), func(t *testing.T) {
				c := newFleetInStorm(t)
				end := time.Now().Add(outage)
				time.AfterFunc(outage, c.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: status}))
				c.insistForAll(c.createIt)
				took := c.lastCreation().Sub(end)
				slowest = max(slowest, took)
				if took > within {
					t.Errorf("the last POST is sent %s after the outage, want %s", took, within)
				}
				for machine, count := range c.serversByName() {
					if count != 1 {
						t.Errorf("%s has %d servers", machine, count)
					}
				}
			})
		}
		t.Logf("%d: up to %s until the last POST", status, slowest)
	}
}

// A CreateMachine whose POST is not sent answers soon, with the words that Gardener reads.
func TestCreateMachineAnswersIfItsPOSTIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleetInStorm(t)
		defer c.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusTooManyRequests})()
		<-time.After(time.Minute)
		c.each(func(m *v1alpha1.Machine) { _ = c.createIt(m) })
		c.cloud.ResetCalls()
		c.each(func(m *v1alpha1.Machine) {
			start := time.Now()
			err := c.createIt(m)
			wantReason(t, err, provider.ReasonTooManyRequests)
			wantWithin(t, start, 65*time.Second)
		})
		if posts := c.cloud.CallCounts()["CreateServer"]; posts > 6 {
			t.Errorf("%d POSTs were sent all the same", posts)
		}
	})
}

// A POST that was not sent made no server: the next call need not wait until one would show.
func TestAPOSTThatWasNotSentIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusServiceUnavailable,
			Header: http.Header{"Retry-After": {"20"}}})
		first := start(func() error { _, err := r.createAsManager(machine("m1")); return err })
		<-time.After(time.Second)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machine("m2"), MachineClass: r.class, Secret: r.secret})
		wantCode(t, err, codes.Unavailable)
		r.mustCreate(machine("m2"))
		if took := time.Since(begun) - bootDuration; took > provider.DefaultSettle {
			t.Errorf("the server is there %s and its boot after a POST that was not sent", took)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// An API that takes 2 POSTs a second gets hardly more of them than it takes.
func TestAnAPIThatTakesTwoPOSTsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machines := many(200)
		c := newFleet(t, machines, machines)
		c.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Rate: 2, Burst: 4, Status: http.StatusTooManyRequests})
		start := time.Now()
		c.insistForAll(c.createIt)
		took, posts := c.lastCreation().Sub(start), c.cloud.CallCounts()["CreateServer"]
		t.Logf("%d machines: %d POSTs in %s", machines, posts, took)
		if took > 150*time.Second || posts > machines*850/200 {
			t.Errorf("%d machines: %d POSTs in %s, want at most 4.25 for each, within 150 s", machines, posts, took)
		}
	})
}

// A deletion that fails delays others by a pause, and no more.
func TestOneDELETEThatAlwaysFailsDelaysOthersLittle(t *testing.T) {
	var took [2]time.Duration
	for i, fails := range []bool{false, true} {
		bubble(t, map[bool]string{false: "none fails", true: "one fails"}[fails], func(t *testing.T) {
			c := newFleetToDelete(t)
			c.workers = len(c.machines) // as the manager has them
			sessions := c.sessions()
			sessions.Jitter = func() float64 { return 1 } // each pause at its longest
			c.driver = provider.NewProvider(sessions, c.options...)
			failing := machine("failing")
			c.mustCreate(failing)
			c.insistForAll(c.createIt)
			var end func()
			var all sync.WaitGroup
			if fails {
				end = c.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: "failing", Status: http.StatusServiceUnavailable})
				all.Go(func() { c.insist(func() error { return c.deleteIt(failing) }) })
			}
			<-time.After(3 * time.Minute)
			c.cloud.ResetCalls()
			for fails && c.cloud.CallCounts()["DeleteServer"] == 0 { // then a pause has just begun
				<-time.After(10 * time.Millisecond)
			}
			start := time.Now()
			c.insistForAll(c.deleteIt)
			took[i] = time.Since(start)
			if fails {
				end()
			}
			all.Wait()
		})
	}
	t.Logf("all are deleted after %s, %s if none fails", took[1], took[0])
	if took[1] > took[0]+35*time.Second {
		t.Errorf("a DELETE that always fails delays the others from %s to %s", took[0], took[1])
	}
}
