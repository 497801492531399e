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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the API shows by mistake for a moment, and what only one answer says.

// emptyFor lets the project look empty from now on.
func (r *rig) emptyFor(moment time.Duration) {
	r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, EmptyProject: true, Duration: moment})
}

var moments = []time.Duration{1500 * time.Millisecond, 4 * time.Second, 8 * time.Second, 12 * time.Second}

func TestAnEmptyMomentProvesNoServerGone(t *testing.T) {
	for _, moment := range moments {
		for name, m := range map[string]func(r *rig) *v1alpha1.Machine{
			"by ProviderID": func(r *rig) *v1alpha1.Machine {
				return withID(r.deleted(machine("m1")), providerIDOf(r.onlyServer().ID))
			},
			"by name": func(r *rig) *v1alpha1.Machine { return r.deleted(machine("m1")) },
			"a stale Node's": func(r *rig) *v1alpha1.Machine {
				return withID(machine("m1"), providerIDOf(r.onlyServer().ID))
			},
		} {
			for _, restarted := range []bool{false, true} {
				bubble(t, fmt.Sprint(moment, " ", name, " restarted: ", restarted), func(t *testing.T) {
					r := newRig(t)
					made := machine("m1")
					r.mustCreate(made)
					<-time.After(2 * time.Minute)
					deleted := m(r)
					deleted.CreationTimestamp = made.CreationTimestamp
					if restarted {
						r.restartNow()
						<-time.After(time.Minute)
					}
					r.emptyFor(moment)
					r.mustDelete(deleted)
					r.wantNothingLeft()
				})
			}
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

// Its server exists, a predecessor made it; the Machine has no ProviderID yet.
func TestAnEmptyMomentMakesNoSecondServer(t *testing.T) {
	for _, moment := range moments {
		bubble(t, moment.String(), func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			id := r.makeServer("m1", nil)
			r.restartNow()
			<-time.After(time.Minute)
			r.emptyFor(moment)
			if response := r.mustCreate(m); response.ProviderID != providerIDOf(id) {
				t.Errorf("the answer is %s, want %s", response.ProviderID, providerIDOf(id))
			}
			r.onlyServer()
		})
	}
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

// Somebody deleted the server; the Machine goes.
func TestDeletingWhatSomebodyDeletedByHandIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		response := r.mustCreate(machine("m1"))
		<-time.After(2 * time.Minute)
		r.removeServer(r.onlyServer().ID)
		r.restartNow()
		<-time.After(time.Minute)
		r.cloud.ResetCalls()
		m := machine("m1")
		m.CreationTimestamp.Time = m.CreationTimestamp.Add(-time.Hour)
		began := time.Now()
		r.mustDelete(withID(r.deleted(m), response.ProviderID))
		wantWithin(t, began, 17*time.Second)
		r.wantCalls("DeleteServer", 0)
		if reads := r.cloud.CallCounts()["GetServer"] + r.cloud.CallCounts()["ListServers"]; reads > 8 {
			t.Errorf("%d reads, want at most 8: %v", reads, r.cloud.CallCounts())
		}
	})
}

// One random 404 costs little, whatever the call.
func TestOneRandom404CostsLittle(t *testing.T) {
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"GetMachineStatus":  func(r *rig, m *v1alpha1.Machine) error { return r.statusErr(m) },
		"InitializeMachine": func(r *rig, m *v1alpha1.Machine) error { return r.initErr(m) },
		"CreateMachine":     func(r *rig, _ *v1alpha1.Machine) error { return r.createErr(machine("m2")) },
		"DeleteMachine":     func(r *rig, m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) },
	} {
		took := map[bool]time.Duration{}
		for _, fails := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, " with a 404: ", fails), func(t *testing.T) {
				r := newRig(t)
				m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
				<-time.After(2 * time.Minute)
				r.restart()
				if fails {
					r.cloud.Inject(randomNotFound)
				}
				began := time.Now()
				if err := call(r, m); err != nil {
					t.Fatal(err)
				}
				took[fails] = time.Since(began)
			})
		}
		if more := took[true] - took[false]; more > 1500*time.Millisecond {
			t.Errorf("%s takes %s longer", name, more)
		}
	}
}

// Machines that a predecessor made: nothing is looked at twice for it.
func TestAfterARestartDeletionsCostNoMore(t *testing.T) {
	var without, with figures
	for restarted, f := range map[bool]*figures{false: &without, true: &with} {
		synctest.Test(t, func(t *testing.T) {
			c := newFleetToDelete(t)
			c.each(c.bringUp)
			c.keepOther()
			<-time.After(time.Minute)
			if restarted {
				c.restartNow()
				<-time.After(time.Minute)
			}
			c.cloud.ResetCalls()
			began := time.Now()
			c.each(c.bringDown)
			f.took = time.Since(began)
			f.calls = c.callsPerMachine()
		})
	}
	t.Logf("without a restart %.2f calls a machine and %s, with one %.2f and %s", without.calls, without.took, with.calls, with.took)
	if with.took > without.took+time.Second {
		t.Errorf("took %s after a restart, %s without", with.took, without.took)
	}
	if !testing.Short() && with.calls > 2.4 { // one of them is the status call's
		t.Errorf("%.2f calls a machine after a restart", with.calls)
	}
}
