// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCreateMachineReadsALoneServerSeldomWhileItBoots(t *testing.T) {
	for boot, atMost := range map[time.Duration]int{12 * time.Second: 12, time.Minute: 30, 3 * time.Minute: 45} {
		bubble(t, boot.String(), func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(boot))
			r.mustCreate(machine("m1"))
			if reads := r.readsWhileBooting(r.onlyServer()); reads > atMost {
				t.Errorf("%d reads while the server booted, want at most %d", reads, atMost)
			}
		})
	}
}

// readsWhileBooting counts the reads from the server's POST until it ran.
func (r *rig) readsWhileBooting(server iaasmock.Server) int {
	reads := 0
	for _, call := range r.cloud.Calls() {
		if call.Method == http.MethodGet && !call.StartedAt.Before(server.CreatedAt) && call.StartedAt.Before(server.LaunchedAt) {
			reads++
		}
	}
	return reads
}

// A failed read says nothing about a server that no list shows yet.
func TestCreateMachineOfAYoungServerSurvivesFailedReads(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"forbidden":       {Status: http.StatusForbidden},
		"internal error":  {Status: http.StatusInternalServerError},
		"a gateway's 404": {Status: http.StatusNotFound, Body: "<html>", ContentType: "text/html"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second))
			fault.Operation, fault.Count = "GetServer", 2
			r.cloud.Inject(fault)
			r.mustCreate(machine("m1"))
			r.onlyServer()
		})
	}
}

// A random 404 must not be confirmed by a list that asks for labels the server
// does not carry any more.
func TestARandomNotFoundOfAServerWhoseLabelsWereChanged(t *testing.T) {
	for name, row := range map[string]struct {
		call func(r *rig, providerID string) error
		left int
	}{
		"create":               {func(r *rig, _ string) error { return r.createErr(machine("m1")) }, 1},
		"delete by name":       {func(r *rig, _ string) error { return r.delete(r.deleted(machine("m1"))) }, 0},
		"delete by ProviderID": {func(r *rig, id string) error { return r.delete(withID(r.deleted(machine("m1")), id)) }, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			r.relabel(r.onlyServer().ID, map[string]any{clusterLabel: nil})
			<-time.After(time.Minute) // past settling
			r.cloud.Inject(randomNotFound)
			if err := row.call(r, created.ProviderID); err != nil {
				wantCode(t, err, codes.Unavailable)
				r.onlyServer()
				if err := row.call(r, created.ProviderID); err != nil {
					t.Fatal(err)
				}
			}
			if servers := r.cloud.Servers(); len(servers) != row.left {
				t.Errorf("%d servers in the end, want %d", len(servers), row.left)
			}
		})
	}
}

// BenchmarkManyMachines reports the same figures.
func TestManyMachinesNeedFewCalls(t *testing.T) {
	for name, row := range map[string]struct {
		addresses []any
		atMost    float64
	}{
		"with allowedAddresses": {[]any{"100.64.0.0/12"}, 3.3},
		"without":               {nil, 2.2},
	} {
		bubble(t, name, func(t *testing.T) {
			up, down := newFleet(t, many(200), many(50)).upAndDown(row.addresses)
			if testing.Short() {
				return // fewer machines share fewer reads: the bounds are those of 200
			}
			if up.calls > row.atMost || down.calls > 1.4 {
				t.Errorf("%.2f calls to create a machine, %.2f to delete it: want at most %.1f and %.1f", up.calls, down.calls, row.atMost, 1.4)
			}
			if up.median > 1200*time.Millisecond || up.p99 > 2500*time.Millisecond {
				t.Errorf("took over the boot of the server: median %s, p99 %s", up.median, up.p99)
			}
			if up.peak > 10 || down.peak > 10 {
				t.Errorf("%d and %d reads within a second, want at most 10", up.peak, down.peak)
			}
		})
	}
}

// BenchmarkDeleteMany reports the same figures. Where a whole cluster goes its list is
// empty in the end, and an empty list proves nothing without a GET: the last 50 servers
// need one each, 8 a second.
func TestManyDeletionsAreNoticedSoon(t *testing.T) {
	for name, row := range map[string]struct {
		whole    bool
		atMost   time.Duration
		machines float64
	}{
		"servers of the cluster stay": {false, 42 * time.Second, 1.4},
		"the whole cluster goes":      {true, 44 * time.Second, 1.6},
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleetToDelete(t)
			if !row.whole {
				c.keepOther()
			}
			took := c.timeToDelete()
			if testing.Short() {
				return // the bounds are those of 200 machines
			}
			if took > row.atMost {
				t.Errorf("50 workers took %s for 200 deletions of 8 s, want at most %s", took, row.atMost)
			}
			if calls := c.callsPerMachine(); calls > row.machines {
				t.Errorf("%.2f calls a machine, want at most %.1f", calls, row.machines)
			}
		})
	}
}

// The number of reads a second does not depend on that of the machines.
func TestReadsStayBoundedAtAnySize(t *testing.T) {
	sizes := []int{100}
	if !testing.Short() {
		sizes = append(sizes, 500)
	}
	for _, size := range sizes {
		bubble(t, fmt.Sprint(size), func(t *testing.T) {
			c := newFleet(t, size, 500, iaasmock.WithBootDuration(20*time.Second))
			c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			c.each(c.bringUp)
			c.wantFewCalls("up", 4.5)
			c.each(c.bringDown)
			c.wantNothingLeft()
			c.wantFewCalls("down", 2.5)
		})
	}
}

// 500 machines are waited for at once: one list a second serves them all.
func TestManyWaitersReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, many(500), many(500), iaasmock.WithBootDuration(45*time.Second), iaasmock.WithBootSpread(0))
		up := start(func() error { c.each(c.bringUp); return nil })
		<-time.After(15 * time.Second)
		c.cloud.ResetCalls()
		began, reads := time.Now(), 0
		const steady = 29 * time.Second
		<-time.After(steady)
		for _, call := range c.cloud.Calls() {
			if !call.StartedAt.Before(began) { // the mock notes calls when they end
				reads++
			}
		}
		if float64(reads) > 1.2*steady.Seconds() {
			t.Errorf("%d reads in %s", reads, steady)
		}
		wantCode(t, <-up, codes.OK)
		c.wantFewCalls("the rest", 4)
	})
}

// Machines that come one after another soon read together, too.
func TestMachinesThatComeOneByOneShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 20, 20, iaasmock.WithBootDuration(20*time.Second))
		c.each(func(m *v1alpha1.Machine) {
			<-time.After(time.Duration(slices.Index(c.machines, m)) * 250 * time.Millisecond)
			c.bringUp(m)
		})
		c.wantFewCalls("up", 7)
	})
}

// Lists may lag: who is not in them yet is read by itself, within the same pace.
func TestManyMachinesInLaggingLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Who is read by a list is up to the scheduler: with fewer a call or two count too much.
		machines := max(many(100), 20)
		c := newFleet(t, machines, machines, iaasmock.WithListLag(20*time.Second), iaasmock.WithBootDuration(5*time.Second))
		c.each(c.bringUp)
		if got := len(c.cloud.Servers()); got != len(c.machines) {
			t.Errorf("%d servers for %d machines", got, len(c.machines))
		}
		c.wantFewCalls("up", 6)
		c.each(c.bringDown)
		c.wantNothingLeft()
	})
}

// A list that hangs keeps nobody from learning by a read of its own that the
// server runs.
func TestAHangingListHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 10, 10)
		time.AfterFunc(5*time.Second, func() {
			c.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Delay: 24 * time.Hour})
		})
		c.each(c.bringUp)
		if over := slices.Max(c.overBoot()); over > 20*time.Second {
			t.Errorf("one took %s over the boot of its server", over)
		}
	})
}

// A list of all may fail where reads of one do not: the SDK refuses a whole list for
// one server that it cannot decode.
func TestAListThatFailsForAllFailsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 10, 10)
		for _, operation := range []string{"ListServers", "ListNics"} {
			c.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusOK, Body: `{"items":[5]}`, Match: listsAll})
		}
		c.each(c.bringUp)
		if over := slices.Max(c.overBoot()); over > 20*time.Second {
			t.Errorf("one took %s over the boot of its server", over)
		}
		if peak := c.peakReads(); peak >= 10 {
			t.Errorf("%d reads within a second", peak)
		}
	})
}

// Lists that still show a server as it was do not make its deletion count as failed.
func TestManyDeletionsInLaggingListsAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, 20, 20, iaasmock.WithListLag(25*time.Second))
		c.each(c.bringUp)
		<-time.After(time.Minute)
		c.cloud.ResetCalls()
		c.each(c.bringDown)
		c.wantNothingLeft()
		c.wantCalls("DeleteServer", 20)
	})
}

// A list that fails says nothing about single reads, and hundreds of creations must not
// end because of it.
func TestCreateMachineDoesWithoutLists(t *testing.T) {
	for _, machines := range []int{10, 20} {
		for _, status := range []int{500, 502, 503, 504} {
			bubble(t, fmt.Sprintf("%d machines, %d", machines, status), func(t *testing.T) {
				c := newFleet(t, machines, machines)
				c.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: 3 * time.Second, Status: status})
				c.wantAllUpWithin(time.Minute)
			})
		}
	}
}

// listsAll tells the lists of a scope from those by a machine's label.
func listsAll(r *http.Request) bool {
	return !strings.Contains(r.URL.Query().Get("label_selector"), provider.StackitMachineLabel+"=")
}

// The session's limit has a burst of one: no second, wherever it begins, holds more than
// eight reads. All that is read counts, retries and failed lists included.
func TestManyWaitersDoWithoutLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, many(500), many(500), iaasmock.WithBootDuration(20*time.Second))
		const begin = 15 * time.Second // all servers are asked for by then
		c.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: begin, Duration: 5 * time.Minute, Status: http.StatusServiceUnavailable})
		start := time.Now()
		c.wantAllUpWithin(5 * time.Minute)
		if peak := c.peakReadsFrom(start.Add(begin)); peak > 8 {
			t.Errorf("%d reads within a second", peak)
		}
	})
}

// An empty list may say so with null.
func TestAListWithoutItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: `{"items":null}`})
		if listed := r.list(); len(listed) != 0 {
			t.Errorf("lists %v", listed)
		}
		r.mustDelete(r.deleted(machine("m1")))
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Count: 1, Status: http.StatusOK, Body: `{"items":null}`})
		r.mustCreate(machine("m1"))
		remove()
		r.onlyServer()
	})
}
