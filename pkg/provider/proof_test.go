// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Which reads prove that a server is gone, and which do not.

// othersOnly is the body of a list of servers that shows another one of the cluster.
const othersOnly = `{"items":[{"id":"` + someServerID + `","name":"x","status":"ACTIVE","machineType":"c2i.2",` +
	`"labels":{"kubernetes.io/cluster":"shoot-a"}}]}`

// sinceDelete selects requests that begin so long after the first DELETE, from before to.
func (r *rig) sinceDelete(from, to time.Duration) func(*http.Request) bool {
	return func(*http.Request) bool {
		for _, call := range r.cloud.Calls() {
			if call.Operation == "DeleteServer" {
				since := time.Since(call.StartedAt)
				return since >= from && since < to
			}
		}
		return false
	}
}

// byTurns selects the requests of one of four phases of 12 s each, in which every server is read at least once.
func byTurns(turn int) func(*http.Request) bool {
	began := time.Now()
	return func(*http.Request) bool { return int(time.Since(began)/(12*time.Second))%4 == turn }
}

// Servers hang in DELETING after our DELETE. Whatever their reads show meanwhile, the manager is not told that they are
// gone. Several share lists, one may be read by its ID.
func TestAServerThatHangsInDeletingIsNotGone(t *testing.T) {
	type fault = iaasmock.Fault
	const soon, minute, later, always = 2 * time.Second, 62 * time.Second, 95 * time.Second, time.Hour
	gets := func(f fault) fault { f.Operation = "GetServer"; return f }
	lists := func(f fault) fault { f.Operation = "ListServers"; return f }
	during := func(match func(*http.Request) bool, f fault) fault { f.Match = match; return f }
	once := func(f fault) fault { f.Count = 1; return f }
	notFound := gets(fault{Status: http.StatusNotFound, Body: randomNotFound.Body})
	unavailable, forbidden := fault{Status: http.StatusServiceUnavailable}, fault{Status: http.StatusForbidden}
	cutOff := lists(fault{Status: http.StatusOK, Body: othersOnly})
	empty := lists(fault{EmptyList: true})
	for name, faults := range map[string]func(r *rig) []fault{
		"GETs answer 404, lists show it":  func(*rig) []fault { return []fault{notFound} },
		"lists are empty, GETs show it":   func(*rig) []fault { return []fault{empty} },
		"lists show others, GETs show it": func(*rig) []fault { return []fault{cutOff} },
		"lists are empty after they showed it": func(r *rig) []fault {
			return []fault{during(r.sinceDelete(5*time.Second, always), empty)}
		},
		"lists show others after a minute": func(r *rig) []fault {
			return []fault{during(r.sinceDelete(minute, always), cutOff)}
		},
		"lists fail, one GET answers 404": func(r *rig) []fault {
			return []fault{lists(unavailable), during(r.sinceDelete(soon, always), once(notFound))}
		},
		"lists fail, GETs answer 403": func(r *rig) []fault {
			return []fault{lists(unavailable), during(r.sinceDelete(soon, always), gets(forbidden))}
		},
		"lists and GETs answer 403": func(r *rig) []fault {
			return []fault{during(r.sinceDelete(soon, always), lists(forbidden)),
				during(r.sinceDelete(soon, always), gets(forbidden))}
		},
		"404 and empty lists, by turns": func(*rig) []fault {
			return []fault{during(byTurns(0), notFound), during(byTurns(2), empty)}
		},
		"403 and empty lists, by turns": func(*rig) []fault {
			return []fault{during(byTurns(0), gets(forbidden)), during(byTurns(2), empty)}
		},
		"404, an outage, an empty list": func(r *rig) []fault {
			return []fault{during(r.sinceDelete(soon, 8*time.Second), notFound),
				during(r.sinceDelete(soon, later), lists(unavailable)),
				during(r.sinceDelete(8*time.Second, 3*minute), gets(unavailable)),
				during(r.sinceDelete(later, always), once(empty))}
		},
		"an empty list, an outage, 404": func(r *rig) []fault {
			return []fault{during(r.sinceDelete(soon, later), gets(unavailable)),
				during(r.sinceDelete(soon, 8*time.Second), once(empty)),
				during(r.sinceDelete(8*time.Second, 3*minute), lists(unavailable)),
				during(r.sinceDelete(later, always), once(notFound))}
		},
	} {
		for _, n := range groupSizes(6) {
			bubble(t, fmt.Sprint(name, ", machines: ", n), func(t *testing.T) {
				r := newRig(t)
				all := append(machines(n), machine("stays"))
				wantNone(t, together(all, r.createAndName))
				<-time.After(time.Minute)
				r.cloud.Inject(fault{Operation: "DeleteServer", NeverGone: true})
				for _, fault := range faults(r) {
					r.cloud.Inject(fault)
				}
				for i, err := range together(all[:n], r.remove) {
					if err == nil {
						t.Errorf("the manager is told that the server of %s is gone", all[i].Name)
					}
				}
			})
		}
	}
}

// While GETs fail, lists alone prove nothing to a creation: it would make a second server.
func TestListsAloneEndNoCreation(t *testing.T) {
	for name, row := range map[string]iaasmock.Fault{
		"they show others": {Status: http.StatusOK, Body: othersOnly},
		"they are empty":   {EmptyList: true},
	} {
		for _, n := range []int{1, 8} {
			bubble(t, fmt.Sprint(name, ", machines: ", n), func(t *testing.T) {
				r := newRig(t, iaasmock.WithBootDuration(4*time.Minute))
				for _, fault := range []iaasmock.Fault{row, {Operation: "GetServer", Status: http.StatusServiceUnavailable}} {
					fault.After, fault.Duration = time.Minute, 2*time.Minute
					if fault.Operation == "" {
						fault.Operation = "ListServers"
					}
					r.cloud.Inject(fault)
				}
				wantNone(t, together(machines(n), r.createErr))
				r.wantCalls("CreateServer", n)
			})
		}
	}
}

// A server runs, and nobody has asked for its deletion: what hides it for less than 15 s, or by one kind of reads only,
// costs it nothing, and lets no creation make a second one.
func TestAServerThatRunsIsNotGone(t *testing.T) {
	type fault = iaasmock.Fault
	type call func(r *rig, m *v1alpha1.Machine) error
	unavailable, forbidden := fault{Status: http.StatusServiceUnavailable}, fault{Status: http.StatusForbidden}
	empty, cutOff := fault{EmptyList: true}, fault{Status: http.StatusOK, Body: othersOnly}
	notFound := fault{Status: http.StatusNotFound, Body: randomNotFound.Body}
	lasting := func(f fault, d time.Duration) fault { f.Duration = d; return f }
	// The manager's cache may have neither the ProviderID nor the Machine's node label.
	calls := map[string]call{
		"status":     (*rig).statusErr,
		"creation":   func(r *rig, m *v1alpha1.Machine) error { return r.createErr(withID(m, "")) },
		"initialize": (*rig).initErr,
	}
	for name, row := range map[string]struct{ gets, lists fault }{
		"GETs answer 503, lists are empty":   {unavailable, empty},
		"GETs answer 403, lists are empty":   {forbidden, empty},
		"GETs answer 404, lists show it":     {notFound, fault{}},
		"GETs show it, lists are empty":      {fault{}, empty},
		"GETs show it, lists show others":    {fault{}, cutOff},
		"404 and no items, less than 15 s":   {lasting(notFound, 13*time.Second), lasting(empty, 13*time.Second)},
		"GETs answer 503, lists show others": {unavailable, cutOff}, // a creation's alone: others may believe them
		"GETs answer a page with 404": {
			fault{Status: http.StatusNotFound, Body: gatewaysPage, ContentType: "text/html"}, empty},
		"GETs answer 404, lists answer 503":   {lasting(notFound, time.Minute), unavailable},
		"GETs and lists answer 503 for 1 min": {lasting(unavailable, time.Minute), lasting(unavailable, time.Minute)},
	} {
		for method, call := range calls {
			if row.gets.Status == unavailable.Status && row.lists.Body == othersOnly && method != "creation" {
				continue
			}
			bubble(t, fmt.Sprint(method, ", ", name), func(t *testing.T) {
				r := newRig(t)
				m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
				<-time.After(2 * time.Minute)
				for operation, fault := range map[string]fault{"GetServer": row.gets, "ListServers": row.lists} {
					if fault.Operation = operation; fault.EmptyList || fault.Status != 0 {
						r.cloud.Inject(fault)
					}
				}
				err := call(r, m)
				if code := reasonOf(err).Code(); err != nil && code == codes.NotFound {
					t.Errorf("the manager is told %v", err)
				}
				r.wantOnly(serverOf(m))
				r.wantCalls("CreateServer", 1)
				r.cloud.ClearFaults()
				<-time.After(time.Minute)
				wantCode(t, call(r, m), codes.OK)
				r.wantOnly(serverOf(m))
			})
		}
	}
}

// How soon the end of a deletion is told, once the server is gone.
func TestTheEndOfADeletionIsToldSoon(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(r *rig, m *v1alpha1.Machine)
		within  time.Duration // after the server went
	}{
		"our own":                       {func(*rig, *v1alpha1.Machine) {}, 4 * time.Second},
		"our own, no list shows it yet": {nil, 4 * time.Second},
		"another's":                     {func(r *rig, m *v1alpha1.Machine) { r.deleteByHand(serverOf(m)) }, 4 * time.Second},
		"our own, of the last": {func(r *rig, _ *v1alpha1.Machine) {
			for _, server := range r.cloud.Servers() {
				if server.Name == "stays" {
					r.removeServer(server.ID)
				}
			}
		}, 4 * time.Second},
		"our own, and GETs answer 403 then": {func(r *rig, _ *v1alpha1.Machine) {
			r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", ForbiddenAfterDelete: true})
		}, 4 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			deletion, lag := 20*time.Second, time.Duration(0)
			if row.prepare == nil {
				deletion, lag = 5*time.Second, 25*time.Second
			}
			r := newRig(t, iaasmock.WithDeleteDuration(deletion), iaasmock.WithListLag(lag))
			r.mustCreate(machine("stays"))
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			if row.prepare != nil {
				<-time.After(2 * time.Minute)
				row.prepare(r, m)
			}
			began := time.Now()
			r.mustRemove(m)
			wantWithin(t, began, deletion+row.within)
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

// The first read of a server may come after its DELETE, if the call that created it ended before one: that DELETE
// counts.
func TestADELETECountsThoughTheFirstReadComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("stays"))
		m := machine("m1")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := r.driver.CreateMachine(ctx,
			&driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
		wantReason(t, err, provider.ReasonTimedOut)
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", ForbiddenAfterDelete: true})
		began := time.Now()
		r.mustRemove(m)
		wantWithin(t, began, 12*time.Second)
	})
}

// The orphan collector may delete the server of a Machine whose ProviderID could not be written. Then the project is
// empty, and the API may answer 403 for a deleted server: the DELETE of that call counts for the Machine's own
// deletion.
func TestADeletionEndsThatTheOrphanCollectorBegan(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"404": {Operation: "DeleteServer", Server: "none"}, "403": {Operation: "GetServer", ForbiddenAfterDelete: true},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithDeleteDuration(2*time.Second))
			id := serverOf(withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID))
			<-time.After(2 * time.Minute)
			r.cloud.Inject(fault)
			r.mustDelete(orphan("m1", id))
			<-time.After(5 * time.Second)
			began := time.Now()
			r.mustRemove(machine("m1"))
			wantWithin(t, began, 30*time.Second)
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

// What nobody asked for is believed after 15 s, not before, and then told.
func TestAServerThatSomebodyDeletedIsBelievedGoneAfter15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(2 * time.Minute)
		r.removeServer(r.onlyServer().ID)
		began := time.Now()
		wantCode(t, r.statusErr(m), codes.NotFound)
		wantWithin(t, began, 20*time.Second)
		if took := time.Since(began); took < 15*time.Second {
			t.Errorf("it is believed after %s", took)
		}
	})
}

// An accepted DELETE does nothing: it is sent once more, and then the manager is told.
func TestADELETEThatDoesNothingIsSentOnceMore(t *testing.T) {
	for ignored, want := range map[int]codes.Code{1: codes.OK, 2: codes.Aborted} {
		bubble(t, fmt.Sprint(ignored), func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: ignored, Status: http.StatusNoContent, Body: " "})
			began := time.Now()
			wantCode(t, r.remove(m), want)
			wantWithin(t, began, 2*time.Minute)
			r.wantCalls("DeleteServer", 2)
			r.mustRemove(m)
			r.wantNothingLeft()
		})
	}
}

// An accepted DELETE does nothing: it is sent again after 15 s.
func TestWhenADELETEThatDidNothingIsSentAgain(t *testing.T) {
	const active, inError = iaasmock.StatusActive, iaasmock.StatusError
	for name, row := range map[string]struct {
		before, after string
		from, to      time.Duration
	}{
		"the server runs":             {active, active, 15 * time.Second, 30 * time.Second},
		"it was in ERROR before":      {inError, inError, 15 * time.Second, 30 * time.Second},
		"it ends in ERROR after that": {active, inError, 15 * time.Second, 30 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			<-time.After(time.Minute)
			r.setStatus(serverOf(m), row.before, "")
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, Status: http.StatusNoContent, Body: " "})
			time.AfterFunc(2*time.Second, func() { r.setStatus(serverOf(m), row.after, "") })
			r.mustRemove(m)
			var sent []time.Time
			for _, call := range r.cloud.Calls() {
				if call.Operation == "DeleteServer" {
					sent = append(sent, call.StartedAt)
				}
			}
			if len(sent) != 2 || sent[1].Sub(sent[0]) < row.from || sent[1].Sub(sent[0]) > row.to {
				t.Errorf("DELETEs at %v, want the second one %s to %s after the first", sent, row.from, row.to)
			}
		})
	}
}

// Servers were just created: no list shows them yet, and once a GET has shown them, GETs do not either for a while.
// They are not gone before settle.
func TestServersThatDoNotShowYetAreNotGone(t *testing.T) {
	for name, row := range map[string]struct {
		machines int
		faults   []iaasmock.Fault
	}{
		"one": {machines: 1},
		"six": {machines: 6},
		"one, and some GETs fail": {1, []iaasmock.Fault{{Operation: "GetServer", After: 8500 * time.Millisecond,
			Duration: 4 * time.Second, Status: http.StatusServiceUnavailable}}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			for _, fault := range row.faults {
				r.cloud.Inject(fault)
			}
			notFound := randomNotFound
			notFound.Operation, notFound.Count, notFound.After, notFound.Duration = "GetServer", 0, 5500*time.Millisecond,
				22*time.Second
			r.cloud.Inject(notFound)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true, Duration: 28 * time.Second})
			wantNone(t, together(machines(row.machines), r.createErr))
			r.wantCalls("CreateServer", row.machines)
		})
	}
}

// listOf is the body of a list of the servers, as they are now.
func listOf(t *testing.T, servers []iaasmock.Server) string {
	t.Helper()
	var items []map[string]any
	for _, server := range servers {
		items = append(items, map[string]any{"id": server.ID, "name": server.Name, "status": server.Status,
			"machineType": server.MachineType, "labels": server.Labels})
	}
	body, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Lists go on showing servers that are gone: what was proved before, or a GET has shown, counts.
func TestAServerThatOnlyAnOldListShowsDoesNotRun(t *testing.T) {
	removeAll := func(r *rig, all []*v1alpha1.Machine) {
		for _, m := range all {
			r.removeServer(serverOf(m))
		}
	}
	deleteAll := func(r *rig, all []*v1alpha1.Machine) { _ = together(all, r.remove) }
	for name, row := range map[string]struct {
		machines int
		end      func(r *rig, all []*v1alpha1.Machine)
	}{
		"a GET answers 404":    {1, removeAll},
		"it was proved gone":   {1, deleteAll},
		"they were, and share": {6, deleteAll},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			all := machines(row.machines)
			wantNone(t, together(all, r.createAndName))
			<-time.After(time.Minute)
			old := listOf(t, r.cloud.Servers())
			row.end(r, all)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: old})
			for i, err := range together(all, r.statusErr) {
				if err == nil {
					t.Errorf("the manager is told that the server of %s runs", all[i].Name)
				}
			}
		})
	}
}

// createAndName calls CreateMachine, and sets the ProviderID.
func (r *rig) createAndName(m *v1alpha1.Machine) error {
	response, err := r.create(m)
	if err == nil {
		m.Spec.ProviderID = response.ProviderID
	}
	return err
}

// Servers are being deleted, which lists do not show yet: their Machines get others.
func TestAnOldListGivesNoMachineAServerThatGoes(t *testing.T) {
	for _, n := range []int{1, 6} {
		bubble(t, fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(25*time.Second), iaasmock.WithDeleteDuration(time.Minute))
			all, going := machines(n), map[string]bool{}
			for _, m := range all {
				id := r.makeRunning(m.Name)
				going[id] = true
			}
			<-time.After(time.Minute)
			for _, server := range r.cloud.Servers() {
				r.deleteByHand(server.ID)
			}
			wantNone(t, together(all, r.createAndName))
			for _, m := range all {
				if going[m.Spec.ProviderID] {
					t.Errorf("%s gets a server that is being deleted", m.Name)
				}
			}
		})
	}
}

// A GET answers 404 at random, and then GETs fail: lists decide, old as they may be.
func TestAfterARandom404AndFailedGETsListsDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		once := randomNotFound
		once.Operation, once.Count = "GetServer", 1
		r.cloud.Inject(once)
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusServiceUnavailable})
		began := time.Now()
		wantCode(t, r.createErr(machine("m1")), codes.OK)
		wantWithin(t, began, time.Minute)
	})
}

// A list of the cluster does not show servers that lost its label: it says nothing about them.
func TestAListOfTheClusterProvesNoServerGoneThatLacksItsLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := machines(6)
		wantNone(t, together(append(all, machine("stays")), r.createAndName))
		for _, m := range all {
			r.relabel(serverOf(m), map[string]any{clusterLabel: nil})
		}
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
		notFound := randomNotFound
		notFound.Operation, notFound.Count, notFound.Match = "GetServer", 0, r.sinceDelete(2*time.Second, time.Hour)
		r.cloud.Inject(notFound)
		for i, err := range together(all, r.remove) {
			if err == nil {
				t.Errorf("the manager is told that the server of %s is gone", all[i].Name)
			}
		}
	})
}

// A server from before there were labels is in lists of the project only, and one of them may be wrong.
func TestOneListOfTheProjectMayBeWrong(t *testing.T) {
	for method, call := range map[string]func(*rig, *v1alpha1.Machine) error{
		"creation": (*rig).createErr, "deletion": (*rig).remove} {
		bubble(t, method, func(t *testing.T) {
			r := newRig(t)
			r.makeServer("m1", func(labels map[string]any) { clear(labels) })
			m := machine("m1")
			r.restartNow()
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, EmptyList: true, Match: withoutSelector})
			wantReason(t, call(r, m), provider.ReasonNotOurs)
			r.onlyServer()
		})
	}
}
