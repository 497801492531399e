// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the driver does not take for granted.

// Lists of the whole project fail for ever, those by label work: also deletions of Machines with a
// ProviderID end.
func TestADeletionByIDEndsWithoutListsOfTheProject(t *testing.T) {
	for name, prepare := range map[string]func(r *rig) *v1alpha1.Machine{
		"the server runs": func(r *rig) *v1alpha1.Machine {
			return withID(machine("m1"), r.makeRunning("m1"))
		},
		"the server is gone already": func(r *rig) *v1alpha1.Machine {
			m := withID(machine("m1"), r.makeRunning("m1"))
			r.deleteByHand(r.onlyServer().ID)
			<-time.After(time.Minute)
			return m
		},
		"a server from OpenStack runs": func(r *rig) *v1alpha1.Machine {
			return withID(migrated(machine("m1")), providerIDOf(r.fromOpenStack("m1")))
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := prepare(r)
			r.restartNow()
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector, Status: http.StatusRequestEntityTooLarge})
			began := time.Now()
			err := r.delete(r.deleted(m))
			for n := 0; reasonOf(err) == provider.ReasonTimedOut && n < 5; n++ {
				<-time.After(5 * time.Second)
				err = r.delete(r.deleted(m))
			}
			if took := time.Since(began); err != nil || took > 15*time.Minute {
				t.Errorf("%v after %s", err, took)
			}
			r.wantNamed("m1", 0, 0, 0)
		})
	}
}

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

// The manager comes back for the Machine whose server shows no labels: the class waits an hour, not for ever.
func TestAClassWaitsAnHourForLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropLabels: true})
		m := machine("m1")
		for range 25 {
			wantReason(t, r.createErr(m), provider.ReasonLabelsMissing)
			<-time.After(3 * time.Minute)
		}
		r.mustCreate(machine("m2"))
	})
}

// Two Machines whose servers show no labels are asked for again and again: the class's hour is that of the later one.
func TestAClassWaitsAnHourForTheLabelsOfTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", DropLabels: true})
		var asked []*v1alpha1.Machine
		for _, name := range []string{"m1", "m2"} {
			m := machine(name)
			wantReason(t, r.createErr(m), provider.ReasonLabelsMissing)
			asked = append(asked, m)
			for range 21 {
				<-time.After(3 * time.Minute)
				for _, m := range asked {
					wantReason(t, r.delete(r.deleted(m)), provider.ReasonLabelsMissing)
				}
			}
		}
		remove()
		r.mustCreate(machine("m3"))
	})
}

// The Machines of a cluster are deleted one after another while a permission is missing.
func TestAMissingPermissionIsToldSoonForEachMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := machines(3)
		for i, m := range all {
			all[i] = withID(m, r.makeRunning(m.Name))
		}
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusForbidden})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		for _, m := range all {
			began := time.Now()
			wantCode(t, r.delete(r.deleted(m)), codes.PermissionDenied)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s was told after %s", m.Name, took)
			}
		}
	})
}

// A server that hangs in DELETING slid out of lists that are cut off; GETs fail for half a minute.
func TestListsThatAreCutOffWhileGETsFailProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		stay := machines(6)
		together(stay, func(m *v1alpha1.Machine) error { return r.createErr(m) })
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: 100 * time.Second, Status: 200,
			Match: func(request *http.Request) bool {
				return !strings.Contains(request.URL.Query().Get("label_selector"), provider.StackitMachineLabel+"=")
			}, Body: `{"items":[{"id":"` + someServerID + `","name":"x","status":"ACTIVE","machineType":"c2i.2",` +
				`"labels":{"kubernetes.io/cluster":"shoot-a"}}]}`})
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", After: 130 * time.Second, Duration: 40 * time.Second, Status: 503})
		if err := r.delete(r.deleted(m)); err == nil {
			t.Error("the manager is told that the server is gone")
		}
	})
}

// The server that this process knows is gone, and lists of the whole project fail.
func TestAServerThatIsGoneWithoutListsOfTheProject(t *testing.T) {
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"creation":          func(r *rig, m *v1alpha1.Machine) error { return r.createErr(m) },
		"deletion":          func(r *rig, m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) },
		"deletion by an ID": func(r *rig, m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			response := r.mustCreate(m)
			if name == "deletion by an ID" {
				m = withID(m, response.ProviderID)
			}
			r.deleteByHand(r.onlyServer().ID)
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector, Status: http.StatusRequestEntityTooLarge})
			began := time.Now()
			err := call(r, m)
			for n := 0; reasonOf(err) == provider.ReasonTimedOut && n < 3; n++ {
				<-time.After(5 * time.Second)
				err = call(r, m)
			}
			if took := time.Since(began); err != nil || took > 13*time.Minute {
				t.Errorf("%v after %s", err, took)
			}
		})
	}
}

// Lists fail for several Machines at once, whose ProviderIDs are known; GETs and DELETEs work.
func TestDeletionsWithoutListsAskForAllServersSoon(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"all lists answer 503":      {Status: http.StatusServiceUnavailable},
		"all lists answer 403":      {Status: http.StatusForbidden},
		"labelled lists answer 503": {Status: http.StatusServiceUnavailable, Match: func(q *http.Request) bool { return !withoutSelector(q) }},
	} {
		for _, n := range []int{1, 2, 3, 5, 20, 50} {
			bubble(t, fmt.Sprint(name, ", machines: ", n), func(t *testing.T) {
				r := newRig(t)
				all := machines(n)
				for i, m := range all {
					all[i] = withID(m, r.makeRunning(m.Name))
				}
				<-time.After(time.Minute)
				fault.Operation = "ListServers"
				remove := r.cloud.Inject(fault)
				done := start(func() error {
					together(all, func(m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) })
					return nil
				})
				<-time.After(time.Minute)
				left := 0
				for _, server := range r.cloud.Servers() {
					if server.Status != iaasmock.StatusDeleting {
						left++
					}
				}
				if left > 0 {
					t.Errorf("%d of %d servers are not being deleted after a minute", left, n)
				}
				remove()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Lists fail, and the one GET that would let the server be deleted fails, too, for a moment.
func TestADeletionWithoutListsReadsTheServerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusServiceUnavailable})
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Duration: 20 * time.Second, Status: http.StatusServiceUnavailable})
		done := start(func() error { return r.delete(r.deleted(m)) })
		<-time.After(2 * time.Minute)
		if left := r.cloud.Servers(); len(left) > 0 && left[0].Status != iaasmock.StatusDeleting {
			t.Errorf("the server is %s after two minutes: %v", left[0].Status, r.cloud.CallCounts())
		}
		r.cloud.ClearFaults()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
