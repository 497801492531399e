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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the API shows by mistake for a moment, and what only one answer says.

// emptyFor lets the project look empty from now on.
func (r *rig) emptyFor(moment time.Duration) {
	r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, EmptyProject: true, Duration: moment})
}

var moments = []time.Duration{4 * time.Second, 12 * time.Second}

// The project looks empty for a moment: no server is leaked, and none made twice.
func TestAnEmptyMomentProvesNothing(t *testing.T) {
	type call func(r *rig, m *v1alpha1.Machine, id string) error
	byName := func(r *rig, m *v1alpha1.Machine, _ string) error { return r.remove(m) }
	byID := func(r *rig, m *v1alpha1.Machine, id string) error {
		return r.delete(withID(r.deleted(m), providerIDOf(id)))
	}
	ofStaleNode := func(r *rig, m *v1alpha1.Machine, id string) error { return r.delete(withID(m, providerIDOf(id))) }
	create := func(r *rig, m *v1alpha1.Machine, _ string) error { return r.createErr(m) }
	for name, row := range map[string]struct {
		restarted bool
		call      call
		left      int
	}{
		"a deletion by ProviderID":                  {false, byID, 0},
		"a deletion by ProviderID, after a restart": {true, byID, 0},
		"a deletion by name":                        {false, byName, 0},
		"a deletion by name, after a restart":       {true, byName, 0},
		"a stale Node's":                            {false, ofStaleNode, 0},
		"a stale Node's, after a restart":           {true, ofStaleNode, 0},
		"a creation, after a restart":               {true, create, 1},
	} {
		for _, moment := range moments {
			bubble(t, fmt.Sprint(name, " ", moment), func(t *testing.T) {
				r := newRig(t)
				m := machine("m1")
				r.mustCreate(m)
				id := r.onlyServer().ID
				<-time.After(2 * time.Minute)
				if row.restarted {
					r.restartNow()
					<-time.After(time.Minute)
				}
				r.emptyFor(moment)
				if err := row.call(r, m, id); err != nil {
					t.Error(err)
				}
				if row.left == 0 {
					r.wantNothingLeft()
				} else {
					r.wantOnly(id)
				}
			})
		}
	}
}

func TestAnEmptyMomentEndsNoCreation(t *testing.T) {
	for _, moment := range moments {
		for _, after := range []time.Duration{0, 3 * time.Second, 40 * time.Second} {
			bubble(t, fmt.Sprint(moment, " after ", after), func(t *testing.T) {
				r := newRig(t, iaasmock.WithBootDuration(time.Minute))
				time.AfterFunc(after, func() { r.emptyFor(moment) })
				r.mustCreate(machine("m1"))
				r.onlyServer()
			})
		}
	}
}

// A POST's answer is lost, lists show nothing for 40 s, and fail meanwhile: what they showed before counts no more.
func TestListsThatFailAndLieProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: 20 * time.Second, Duration: 9 * time.Second,
			Status: 503})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 40 * time.Second, EmptyList: true})
		r.mustCreateAsManager(machine("m1"))
		r.onlyServer()
	})
}

// A selector that shows nothing is not believed for a Machine that may have a server: the
// whole project is looked at.
func TestABrokenSelectorProvesNothing(t *testing.T) {
	for name, prepare := range map[string]func(r *rig){
		"a predecessor made it": func(r *rig) {
			r.makeServer("m1", nil)
			r.restartNow()
			<-time.After(time.Minute)
		},
		"the POST's answer is lost": func(r *rig) {
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			prepare(r)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true,
				Match: func(request *http.Request) bool { return !withoutSelector(request) }})
			if response := r.mustCreate(m); response.ProviderID != providerIDOf(r.onlyServer().ID) {
				t.Errorf("the answer is %s", response.ProviderID)
			}
		})
	}
}

// Somebody deleted the server; the Machine goes. The wait that nobody expects is told, once.
func TestDeletingWhatSomebodyDeletedByHandIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(2 * time.Minute)
		r.removeServer(r.onlyServer().ID)
		r.restartNow()
		<-time.After(time.Minute)
		r.cloud.ResetCalls()
		began := time.Now()
		r.mustRemove(m)
		wantWithin(t, began, 22*time.Second)
		r.wantCalls("DeleteServer", 0)
		if reads := r.cloud.CallCounts()["GetServer"] + r.cloud.CallCounts()["ListServers"]; reads > 8 {
			t.Errorf("%d reads, want at most 8: %v", reads, r.cloud.CallCounts())
		}
	})
}

// GETs failed for a while, and lists of an empty project prove nothing by themselves.
func TestADeletionAsksAgainOnceGETsHaveFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(2 * time.Minute)
		r.removeServer(r.onlyServer().ID)
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Duration: 20 * time.Second,
			Status: http.StatusServiceUnavailable})
		r.mustRemove(m)
	})
}

// What the driver does not take for granted.

// A server without labels hangs in DELETING, GETs answer 404 by chance now and then, and lists of the
// project fail: those by the machine label say nothing about it.
func TestAListThatCannotShowTheServerProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector,
			Status: http.StatusRequestEntityTooLarge})
		for _, after := range []time.Duration{4 * time.Minute, 13 * time.Minute} {
			fault := randomNotFound
			fault.After = after
			r.cloud.Inject(fault)
		}
		<-time.After(time.Minute)
		for range 3 {
			err := r.delete(r.deleted(withID(migrated(machine("m1")), providerIDOf(id))))
			wantReason(t, err, provider.ReasonTimedOut)
			<-time.After(5 * time.Second)
		}
	})
}

// An orphan whose GET fails was not deleted.
func TestAnOrphanThatCannotBeReadIsNoSuccess(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"503":                     {Status: http.StatusServiceUnavailable},
		"403":                     {Status: http.StatusForbidden},
		"a 404 about the project": {Status: http.StatusNotFound, Body: `{"code":404,"msg":"project not found"}`},
		"a gateway's 404":         {Status: http.StatusNotFound, Body: "<html>not found</html>", ContentType: "text/html"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			id := r.makeServer("m1", nil)
			fault.Operation = "GetServer"
			r.cloud.Inject(fault)
			if err := r.delete(orphan("m1", id)); err == nil {
				t.Error("the manager is told that the orphan is deleted")
			}
			r.wantCalls("ListServers", 0)
		})
	}
}
