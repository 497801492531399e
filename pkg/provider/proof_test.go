// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Which reads prove that a server is gone, and which do not.

// othersOnly is the body of a list of servers that shows another one of the cluster.
const othersOnly = `{"items":[{"id":"` + someServerID + `","name":"x","status":"ACTIVE","machineType":"c2i.2",` +
	`"labels":{"kubernetes.io/cluster":"shoot-a"}}]}`

// sinceDelete is the time since the first DELETE of a server.
func (r *rig) sinceDelete() time.Duration {
	for _, call := range r.cloud.Calls() {
		if call.Operation == "DeleteServer" {
			return time.Since(call.StartedAt)
		}
	}
	return 0
}

// Servers hang in DELETING after our DELETE. Whatever their reads show meanwhile, the manager is not told that they are
// gone. Several share lists, one is read by its ID.
func TestAServerThatHangsInDeletingIsNotGone(t *testing.T) {
	type fault = iaasmock.Fault
	lists := func(f fault) fault { f.Operation = "ListServers"; return f }
	unavailable := lists(fault{Status: http.StatusServiceUnavailable})
	cutOff, empty := lists(fault{Status: http.StatusOK, Body: othersOnly}), lists(fault{EmptyList: true})
	forbidden := fault{Operation: "GetServer", Status: http.StatusForbidden}
	since := func(r *rig, after time.Duration, f fault) fault {
		f.Match = func(*http.Request) bool { return r.sinceDelete() >= after }
		return f
	}
	for name, faults := range map[string]func(r *rig) []fault{
		"lists show others, GETs show it":      func(*rig) []fault { return []fault{cutOff} },
		"lists are empty after they showed it": func(r *rig) []fault { return []fault{since(r, 5*time.Second, empty)} },
		"lists show others after a minute":     func(r *rig) []fault { return []fault{since(r, 62*time.Second, cutOff)} },
		"lists fail, GETs answer 403": func(r *rig) []fault {
			return []fault{unavailable, since(r, 2*time.Second, forbidden)}
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

// The status of a server that somebody deleted is NotFound after one 404.
func TestTheStatusOfAServerThatSomebodyDeletedIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(2 * time.Minute)
		r.removeServer(r.onlyServer().ID)
		r.cloud.ResetCalls()
		wantCode(t, r.statusErr(m), codes.NotFound)
		r.wantCalls("GetServer", 1)
	})
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

// An accepted DELETE does nothing: it is sent once more after 15 s, and then the manager is told.
func TestADELETEThatDoesNothingIsSentOnceMore(t *testing.T) {
	const active, inError = iaasmock.StatusActive, iaasmock.StatusError
	for name, row := range map[string]struct {
		ignored       int
		before, after string
		want          codes.Code
	}{
		"the server runs":             {1, active, active, codes.OK},
		"it was in ERROR before":      {1, inError, inError, codes.OK},
		"it ends in ERROR after that": {1, active, inError, codes.OK},
		"the second one, too":         {2, active, active, codes.Aborted},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			<-time.After(time.Minute)
			r.setStatus(serverOf(m), row.before, "")
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: row.ignored, Status: http.StatusOK, Body: " "})
			time.AfterFunc(2*time.Second, func() { r.setStatus(serverOf(m), row.after, "") })
			began := time.Now()
			wantCode(t, r.remove(m), row.want)
			wantWithin(t, began, time.Minute)
			var sent []time.Time
			for _, call := range r.cloud.Calls() {
				if call.Operation == "DeleteServer" {
					sent = append(sent, call.StartedAt)
				}
			}
			if len(sent) != 2 || sent[1].Sub(sent[0]) < 15*time.Second || sent[1].Sub(sent[0]) > 30*time.Second {
				t.Errorf("DELETEs at %v, want the second one 15 to 30 s after the first", sent)
			}
			r.mustRemove(m)
			r.wantNothingLeft()
		})
	}
}

// An API may show an empty project for a moment.
func TestAnEmptyMomentEndsNoCreation(t *testing.T) {
	for _, moment := range []time.Duration{4 * time.Second, 12 * time.Second} {
		for _, after := range []time.Duration{0, 3 * time.Second, 40 * time.Second} {
			bubble(t, fmt.Sprint(moment, " after ", after), func(t *testing.T) {
				r := newRig(t, iaasmock.WithBootDuration(time.Minute))
				time.AfterFunc(after, func() {
					r.cloud.Inject(iaasmock.Fault{EmptyProject: true, Duration: moment})
				})
				r.mustCreate(machine("m1"))
				r.onlyServer()
			})
		}
	}
}
