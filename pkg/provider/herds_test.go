// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Many Machines and many sidecars, as behind STACKIT's gateway: 429 by source address, without a Retry-After.

func isRead(request *http.Request) bool { return request.Method == http.MethodGet }

// reads counts the GETs and lists since the last ResetCalls.
func (r *rig) reads() (count int) {
	for _, call := range r.cloud.Calls() {
		if call.Method == http.MethodGet {
			count++
		}
	}
	return count
}

// A kind of calls fails for 5 minutes while many Machines come or go, and the manager is back 5 s after each error.
// Once the API is back all is soon done.
func TestNothingStorms(t *testing.T) {
	const outage = 5 * time.Minute
	create := func(c *fleet, m made) error { return c.createErr(m) }
	remove := func(c *fleet, m made) error { return c.remove(m) }
	reads := func(status int) fault { return all(fault{Match: isRead, Status: status}) }
	patches := func(f fault) fault { f.Operation = "UpdateNic"; return f }
	for name, row := range map[string]struct {
		machines int
		call     func(*fleet, made) error
		boot     time.Duration
		fault    fault
		// first is how many calls there may be in the first minute, later in each after the second, on average.
		first, later int
	}{
		"POST answered 429":   {50, create, 0, posts(fault{Status: 429}), 100, 4},
		"POST answered 451":   {50, create, 0, posts(fault{Status: 451}), 100, 4},
		"POST, a page of 403": {50, create, 0, posts(page(403)), 100, 4},
		"POST that hangs":     {50, create, 0, posts(fault{Delay: 29 * time.Second, DropBefore: true}), 100, 4},
		"POST answered 401":   {50, create, 0, posts(fault{Status: 401}), 100, 4},
		"DELETE answered 401": {50, remove, 0, deletes(fault{Status: 401}), 100, 4},
		"DELETE answered 503": {50, remove, 0, deletes(fault{Status: 503}), 100, 4},
		"PATCH answered 401":  {50, create, 0, patches(fault{Status: 401}), 100, 4},
		"PATCH answered 503":  {50, create, 0, patches(fault{Status: 503}), 100, 4},
		"tokens answered 503": {20, create, 0, fault{Operation: "Token", Status: 503}, 30, 6},
		"reads answered 429":  {5, create, 0, reads(429), 60, 20},
		"reads answered 401":  {5, create, 0, reads(401), 60, 20},
		"reads answered 503":  {5, create, 0, reads(503), 60, 30}, // calls end after 30 s, and come again
		"lists answered 500, servers boot": {
			60, create, 5 * time.Minute, lists(fault{Status: 500, After: 5 * time.Second}), 15, 5},
		"all answered 503, servers boot": {
			50, create, 3 * time.Minute, all(fault{Status: 503, After: 30 * time.Second}), 120, 60},
		"all answered 503, servers are to go": {50, remove, 0, all(fault{Status: 503}), 120, 60},
		"all answered 401, servers are to go": {50, remove, 0, all(fault{Status: 401}), 120, 60},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleet(t, many(row.machines), many(row.machines), iaasmock.WithBootDuration(max(row.boot, bootDuration)))
			c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			each := func(call func(*fleet, made) error) {
				c.each(func(m made) {
					for insist(func() error { return call(c, m) }) != nil { // 401 is told
						<-time.After(3 * time.Minute)
					}
				})
			}
			isRemoval := row.fault.Operation == "DeleteServer" || strings.HasSuffix(name, "are to go")
			if isRemoval {
				each(create)
			}
			row.fault.Duration = outage
			c.cloud.Inject(row.fault)
			c.cloud.ResetCalls()
			began := time.Now().Add(row.fault.After)
			each(row.call)
			counts := make([]int, outage/time.Minute)
			for _, call := range c.cloud.Calls() {
				isMeant := row.fault.Operation == iaasmock.OperationIaaS || row.fault.Operation == call.Operation
				isMeant = isMeant && (row.fault.Match == nil || call.Method == http.MethodGet)
				if since := call.StartedAt.Sub(began); isMeant && since >= 0 && since < outage {
					counts[since/time.Minute]++
				}
			}
			later := float64(counts[2]+counts[3]+counts[4]) / 3
			t.Logf("calls a minute: %v; all is done %s after the outage", counts, time.Since(began)-outage)
			if counts[0] > row.first || later > float64(row.later) {
				t.Errorf("%v calls in five minutes, want at most %d, and later %d a minute", counts, row.first, row.later)
			}
			wantWithin(t, began, outage+4*time.Minute)
			if isRemoval {
				c.wantNothingLeft()
			} else if servers := len(c.cloud.Servers()); servers != len(c.machines) {
				t.Errorf("%d servers for %d Machines", servers, len(c.machines))
			}
		})
	}
}

// One limit for all calls of a project: reads must not take it from the writes that they wait for, nor the reverse.
func TestReadsAndWritesShareALimit(t *testing.T) {
	for name, row := range map[string]struct {
		isRemoval bool
		perSecond float64
		within    time.Duration
	}{
		"up, 2 calls a second":  {false, 2, 150 * time.Second}, // 100 writes and a boot: 70 s at least
		"down, a call a second": {true, 1, 456 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleet(t, many(50), many(50), iaasmock.WithBootDuration(20*time.Second))
			c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			call := c.createErr
			if row.isRemoval {
				for _, m := range c.machines {
					m.Spec.ProviderID = c.makeRunning(m.Name)
				}
				<-time.After(time.Minute)
				call = c.remove
			}
			c.cloud.Inject(all(fault{Status: http.StatusTooManyRequests, Rate: row.perSecond, Burst: 4}))
			began := time.Now()
			c.each(func(m made) { _ = insist(func() error { return call(m) }) })
			t.Logf("%s: %v", time.Since(began), c.cloud.CallCounts())
			wantWithin(t, began, row.within)
		})
	}
}

// A hundred sidecars of three Machines each share an API that takes 33 reads a second.
func TestAHerdOfSidecarsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithBootDuration(20*time.Second))
		r.cloud.Inject(all(fault{Match: isRead, Status: http.StatusTooManyRequests, Rate: 33, Burst: 33}))
		sidecars, shown := many(100), atomic.Int64{}
		var calls sync.WaitGroup
		for i := range sidecars {
			own := *r
			own.restart()
			own.class = r.class.DeepCopy()
			own.setSpec(func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: fmt.Sprint("shoot-", i)} })
			for j := range 3 {
				calls.Go(func() {
					m := machine(fmt.Sprintf("m-%d-%d", i, j))
					if own.createErr(m) != nil {
						shown.Add(1)
						_, _ = own.createAsManager(m)
					}
				})
			}
		}
		calls.Wait()
		machines := 3 * sidecars
		t.Logf("%.1f reads each of %d Machines, %d shown an error", float64(r.reads())/float64(machines), machines,
			shown.Load())
		if r.reads() > 20*machines || shown.Load() > int64(machines)/10 || len(r.cloud.Servers()) != machines {
			t.Errorf("%d reads for %d Machines, of which %d are shown an error", r.reads(), machines, shown.Load())
		}
	})
}
