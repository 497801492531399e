// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
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
					if err := r.delete(deleted); err != nil {
						t.Fatal(err)
					}
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

// The sidecar leads for longer than settle.
func TestOneEmptyListProvesNothing(t *testing.T) {
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine){
		"CreateMachine": func(r *rig, m *v1alpha1.Machine) { r.mustCreate(m); r.onlyServer() },
		"DeleteMachine": func(r *rig, m *v1alpha1.Machine) {
			if err := r.delete(r.deleted(m)); err != nil {
				r.t.Error(err)
			}
			r.wantNothingLeft()
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			r.makeServer("m1", nil)
			r.restartNow()
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, EmptyList: true})
			call(r, m)
		})
	}
}

// A selector that shows nothing is not believed for a Machine that may have a server: the
// whole project is looked at.
func TestABrokenSelectorProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		id := r.makeServer("m1", nil)
		r.restartNow()
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true,
			Match: func(request *http.Request) bool { return request.URL.Query().Has("label_selector") }})
		if response := r.mustCreate(m); response.ProviderID != providerIDOf(id) {
			t.Errorf("the answer is %s, want %s", response.ProviderID, providerIDOf(id))
		}
		r.onlyServer()
	})
}

// Nor after a POST whose answer was lost, for a Machine that is young.
func TestABrokenSelectorHidesNoLostPOST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true,
			Match: func(request *http.Request) bool { return request.URL.Query().Has("label_selector") }})
		r.mustCreate(machine("m1"))
		r.onlyServer()
	})
}

// A server of the Machine's name without labels may be its own, from before there were
// labels: nothing is made beside it.
func TestAServerFromBeforeLabelsIsNoNone(t *testing.T) {
	for name, row := range map[string]struct {
		labels map[string]any // besides the class's label
		want   codes.Code
	}{
		"no label at all":           {nil, codes.FailedPrecondition},
		"no machine label":          {map[string]any{clusterLabel: "shoot-a"}, codes.FailedPrecondition},
		"no cluster label":          {map[string]any{provider.StackitMachineLabel: "m1"}, codes.FailedPrecondition},
		"another machine's":         {map[string]any{provider.StackitMachineLabel: "m2"}, codes.OK},
		"another cluster's, by key": {map[string]any{"example.org/cluster": "c"}, codes.OK},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			r.makeServer("m1", func(labels map[string]any) {
				delete(labels, provider.StackitMachineLabel)
				delete(labels, clusterLabel)
				for key, value := range row.labels {
					labels[key] = value
				}
			})
			r.restartNow()
			_, err := r.create(m)
			wantCode(t, err, row.want)
			if row.want != codes.OK {
				wantCode(t, r.delete(r.deleted(m)), row.want)
			}
			servers := 1
			if row.want == codes.OK {
				servers = 2
			}
			if got := len(r.cloud.Servers()); got != servers {
				t.Errorf("%d servers, want %d", got, servers)
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
		if err := r.cloud.RemoveServer(r.onlyServer().ID); err != nil {
			t.Fatal(err)
		}
		r.restartNow()
		<-time.After(time.Minute)
		r.cloud.ResetCalls()
		m := machine("m1")
		m.CreationTimestamp.Time = m.CreationTimestamp.Add(-time.Hour)
		began := time.Now()
		if err := r.delete(withID(r.deleted(m), response.ProviderID)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 17*time.Second {
			t.Errorf("took %s, want at most 17 s", took)
		}
		if deletions := r.cloud.CallCounts()["DeleteServer"]; deletions > 0 {
			t.Errorf("%d deletions of a server that no read has shown", deletions)
		}
		if reads := r.cloud.CallCounts()["GetServer"] + r.cloud.CallCounts()["ListServers"]; reads > 8 {
			t.Errorf("%d reads, want at most 8: %v", reads, r.cloud.CallCounts())
		}
	})
}

// One random 404 costs little, whatever the call.
func TestOneRandom404CostsLittle(t *testing.T) {
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"GetMachineStatus":  func(r *rig, m *v1alpha1.Machine) error { _, err := r.status(m); return err },
		"InitializeMachine": func(r *rig, m *v1alpha1.Machine) error { _, err := r.initialize(m); return err },
		"CreateMachine":     func(r *rig, _ *v1alpha1.Machine) error { _, err := r.create(machine("m2")); return err },
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

// The answer to the POST names a server, and nothing more: whose it is, a read decides.
func TestThePOSTsAnswerIsNotBelieved(t *testing.T) {
	for name, executed := range map[string]bool{"the server was made": true, "it was not made": false} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			other := r.makeServer("other", nil)
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, OtherServer: other, Executed: executed})
			response := r.mustCreate(machine("m1"))
			if response.ProviderID == providerIDOf(other) {
				t.Error("the answer is another machine's server")
			}
			for _, server := range r.cloud.Servers() {
				if nic := nicOf(t, r, server); server.ID == other && len(nic.AllowedAddresses) > 0 {
					t.Errorf("the other machine's NIC carries %v", nic.AllowedAddresses)
				}
			}
			if servers := r.cloud.Servers(); len(servers) != 2 {
				t.Errorf("%d servers, want the other one and the machine's", len(servers))
			}
		})
	}
}

// The call ended before it could read what the answer named; the Machine is deleted.
func TestDeleteMachineAfterAnAnswerThatNamedAnothersServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := r.makeServer("other", nil)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, OtherServer: other, Executed: true})
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusServiceUnavailable})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.DeadlineExceeded)
		remove()
		if err := r.delete(r.deleted(machine("m1"))); err != nil {
			t.Fatal(err)
		}
		if left := r.onlyServer(); left.ID != other || left.Status != iaasmock.StatusActive {
			t.Errorf("%s %s is left, want the other machine's", left.Status, left.ID)
		}
	})
}

// Nobody would ever find the server again.
func TestAServerWhoseLabelsTheAPIDroppedIsDeleted(t *testing.T) {
	drops := iaasmock.Fault{Operation: "CreateServer", Count: 1, DropLabels: true}
	t.Run("by CreateMachine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(drops)
			_, err := r.create(machine("m1"))
			wantCode(t, err, codes.Internal)
			r.wantNothingLeft()
			r.mustCreate(machine("m1"))
			r.onlyServer()
		})
	})
	t.Run("by DeleteMachine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(drops)
			done := r.startCreate(machine("m1"))
			<-time.After(3 * time.Second)
			r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Count: 1, Status: http.StatusUnauthorized})
			r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Count: 1, Status: http.StatusUnauthorized})
			wantCode(t, <-done, codes.Unavailable)
			if err := r.delete(r.deleted(machine("m1"))); err != nil {
				t.Fatal(err)
			}
			r.wantNothingLeft()
		})
	})
}

// They may take settle to show.
func TestLabelsThatShowLateAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropLabels: true})
		done := r.startCreate(machine("m1"))
		<-time.After(20 * time.Second)
		made := r.onlyServer().ID
		r.relabel(made, map[string]any{provider.StackitMachineLabel: "m1", provider.StackitMachineClassLabel: "class-a", clusterLabel: "shoot-a"})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if left := r.onlyServer(); left.ID != made {
			t.Errorf("%s is left, want %s", left.ID, made)
		}
	})
}

// The Secret or the class is edited while the Machine is created.
func TestASecretThatNamesAnotherProjectLosesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		m.UID = "uid"
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 5 * time.Second, EmptyList: true})
		done := r.startCreate(m)
		<-time.After(time.Second)
		secret, class := r.secret.DeepCopy(), r.class.DeepCopy()
		r.secret.Data["projectId"] = []byte(iaasmock.SecondProjectID)
		r.secret.Data["serviceAccountKey"] = keys().secondProject
		r.setSpec(func(spec map[string]any) {
			spec["networking"] = map[string]any{"networkId": iaasmock.SecondProjectNetworkID}
		})
		_, err := r.create(m)
		wantCode(t, err, codes.FailedPrecondition)
		wantCode(t, r.delete(r.deleted(m)), codes.FailedPrecondition)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.onlyServer()
		_, err = r.create(m)
		wantCode(t, err, codes.FailedPrecondition)
		r.secret, r.class = secret, class
		if err := r.delete(r.deleted(m)); err != nil {
			t.Fatal(err)
		}
		r.wantNothingLeft()
	})
}

// Somebody wrote another Machine's name into a machine label: the orphan collector takes the
// running server for one that its Machine does not know.
func TestALabelEditedByHandCostsNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("m1"))
		id := r.onlyServer().ID
		r.relabel(id, map[string]any{provider.StackitMachineLabel: "m2"})
		if name := r.list()[providerIDOf(id)]; name != "m2" {
			t.Errorf("ListMachines lists it as %q", name)
		}
		wantCode(t, r.delete(orphan("m2", id)), codes.FailedPrecondition)
		if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
			t.Errorf("the server is %s", left.Status)
		}
	})
}

func TestOrphansHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithDeleteDuration(40*time.Second))
		for i := range 20 {
			r.makeServer(fmt.Sprint("orphan-", i), nil)
		}
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: "orphan-3", Count: 1, NeverGone: true})
		run := func() (took time.Duration, listed int) {
			began := time.Now()
			found := r.list()
			for providerID, name := range found {
				if err := r.delete(withID(orphan(name, ""), providerID)); err != nil {
					t.Error(err)
				}
			}
			return time.Since(began), len(found)
		}
		r.cloud.ResetCalls()
		took, _ := run()
		if took > 10*time.Second {
			t.Errorf("the run took %s, want at most 10 s", took)
		}
		counts := r.cloud.CallCounts()
		if calls := counts["GetServer"] + counts["DeleteServer"]; calls > 40 {
			t.Errorf("%d calls, want at most 40: %v", calls, counts)
		}
		<-time.After(time.Minute)
		if left := r.onlyServer(); left.Name != "orphan-3" || left.Status != iaasmock.StatusDeleting {
			t.Errorf("%s is %s, want orphan-3 stuck", left.Name, left.Status)
		}
		if _, listed := run(); listed != 1 {
			t.Errorf("%d orphans are listed, want the stuck one", listed)
		}
		<-time.After(time.Minute)
		r.wantNothingLeft()
	})
}

// An orphan's DELETE that hangs ends soon: the manager deletes one after the other.
func TestAnOrphanThatHangsHoldsUpTheRunForSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.makeServer("m1", nil)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Delay: time.Hour})
		began := time.Now()
		wantCode(t, r.delete(orphan("m1", id)), codes.DeadlineExceeded)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestDeleteMachineOfNothingInParticular(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("m1"))
		wantCode(t, r.delete(machine("m1")), codes.InvalidArgument)
		wantCode(t, r.delete(&v1alpha1.Machine{ObjectMeta: orphan("m1", "").ObjectMeta}), codes.InvalidArgument)
		r.onlyServer()
	})
}

// The Machine's ProviderID names somebody else's server.
func TestOneForeignIDKeepsNoOtherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign := r.makeServer("m2", nil)
		r.makeServer("m1", nil)
		r.makeServer("m1", nil)
		wantCode(t, r.delete(withID(r.deleted(machine("m1")), providerIDOf(foreign))), codes.FailedPrecondition)
		if left := r.onlyServer(); left.ID != foreign || left.Status == iaasmock.StatusDeleting {
			t.Errorf("%s %s is left, want only %s", left.Status, left.ID, foreign)
		}
	})
}

// Every event of a class makes the manager call for all of its machines.
func TestAnExhaustedClassIsNotEvenLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusForbidden, Body: quotaExceeded})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.ResourceExhausted)
		r.cloud.ResetCalls()
		for _, name := range []string{"m1", "m2", "m3"} {
			_, err := r.create(machine(name))
			wantCode(t, err, codes.ResourceExhausted)
		}
		if calls := r.cloud.Calls(); len(calls) > 0 {
			t.Errorf("%d calls, want none: %v", len(calls), r.cloud.CallCounts())
		}
	})
}

// A POST of the machine is open: its server must be found, whatever the class.
func TestAnExhaustedClassHidesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Server: "m1", Count: 1, DropAfter: true})
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true})
		done := r.startCreate(machine("m1"))
		<-time.After(time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Server: "m2", Count: 1, Status: http.StatusForbidden, Body: quotaExceeded})
		_, err := r.create(machine("m2"))
		wantCode(t, err, codes.ResourceExhausted)
		remove()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.mustCreate(machine("m1"))
		r.onlyServer()
	})
}

// The first pass waited for a server to go; the second finds another one.
func TestCredentialsRefusedAtADeleteAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithListLag(20*time.Second))
		m := machine("m1")
		r.makeServer("m1", nil)
		<-time.After(25 * time.Second)
		r.makeServer("m1", nil) // does not show yet
		r.restartNow()
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusUnauthorized,
			Match: func(*http.Request) bool { return r.cloud.CallCounts()["DeleteServer"] > 0 }})
		wantCode(t, r.delete(r.deleted(m)), codes.Unavailable)
	})
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

// The first POST of a Machine in creation, after a restart.
func TestAfterARestartTheFirstPOSTComesAfterSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		r.restartNow()
		led := time.Now()
		r.mustCreate(m)
		if waited := r.onlyServer().CreatedAt.Sub(led); waited > provider.DefaultSettle+time.Second {
			t.Errorf("the POST came %s after the process began to lead", waited)
		}
		if names := slices.Collect(func(yield func(string) bool) {
			for _, call := range r.cloud.Calls() {
				if call.Operation == "ListServers" && !call.Query.Has("label_selector") && !yield(call.Path) {
					return
				}
			}
		}); len(names) != 1 {
			t.Errorf("%d lists of the whole project, want 1", len(names))
		}
	})
}

// The class gets the cluster label that the log asks for while a POST is open.
func TestAClusterLabelThatIsAddedHidesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		withLabel := r.class.ProviderSpec
		r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 5 * time.Second, EmptyList: true})
		done := r.startCreate(m)
		<-time.After(2 * time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Count: 2, Status: http.StatusUnauthorized})
		wantCode(t, <-done, codes.Unavailable)
		r.class = r.class.DeepCopy()
		r.class.ProviderSpec = withLabel
		_, err := r.create(m)
		wantCode(t, err, codes.FailedPrecondition)
		r.onlyServer()
	})
}

// What the answer named is not shown at first: it is read, and found to be somebody else's,
// while its deletion is waited for.
func TestDeleteMachineFindsLateThatAServerIsAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := r.makeServer("other", nil)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, OtherServer: other, Executed: true})
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusServiceUnavailable})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.DeadlineExceeded)
		remove()
		r.cloud.Inject(randomNotFound)
		if err := r.delete(r.deleted(machine("m1"))); err != nil {
			t.Fatal(err)
		}
		if left := r.onlyServer(); left.ID != other || left.Status != iaasmock.StatusActive {
			t.Errorf("%s %s is left, want the other machine's", left.Status, left.ID)
		}
	})
}

// Nor is it for a Machine that is older than this leadership, or than the ledger's hour.
func TestAnExhaustedClassIsNotLookedUpForOlderMachines(t *testing.T) {
	for name, age := range map[string]func(r *rig, m *v1alpha1.Machine){
		"older than leadership": func(r *rig, _ *v1alpha1.Machine) { r.restartNow() },
		"older than an hour": func(r *rig, m *v1alpha1.Machine) {
			began := time.Now().Add(-24 * time.Hour)
			r.restart(provider.WithActingSince(func() time.Time { return began }))
			m.CreationTimestamp.Time = m.CreationTimestamp.Add(-61 * time.Minute)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			age(r, m)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusForbidden, Body: quotaExceeded})
			_, err := r.create(m)
			wantCode(t, err, codes.ResourceExhausted)
			r.cloud.ResetCalls()
			_, err = r.create(m)
			wantCode(t, err, codes.ResourceExhausted)
			if calls := r.cloud.CallCounts(); len(calls) > 0 {
				t.Errorf("calls %v, want none", calls)
			}
		})
	}
}

// The class names another region than when the server was made, and the Machine's ProviderID
// names it.
func TestARegionThatIsEditedLosesNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		m = withID(m, r.mustCreate(m).ProviderID)
		r.setSpec(func(spec map[string]any) { spec["region"] = "eu02" })
		wantCode(t, r.delete(r.deleted(m)), codes.FailedPrecondition)
		r.setSpec(nil)
		if err := r.delete(r.deleted(m)); err != nil {
			t.Fatal(err)
		}
		r.wantNothingLeft()
	})
}

// One look-up shows the server DELETING, a later one of the same call shows it ACTIVE again.
func TestCreateMachineDeletesNoServerThatItUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		id := r.makeServer("m1", nil)
		<-time.After(30 * time.Second)
		r.restartNow()
		if err := r.cloud.SetServerStatus(id, iaasmock.StatusDeleting, ""); err != nil {
			t.Fatal(err)
		}
		done := r.startCreate(m)
		<-time.After(5 * time.Second)
		if err := r.cloud.SetServerStatus(id, iaasmock.StatusActive, ""); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if deletions := r.cloud.CallCounts()["DeleteServer"]; deletions > 0 || r.onlyServer().ID != id {
			t.Errorf("%d deletions of the server that is the answer", deletions)
		}
	})
}

// One deletion hangs, the other one fails once.
func TestADeletionThatHangsKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		first, second := r.makeServer("m1", nil), r.makeServer("m1", nil)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: first, Count: 2, NeverGone: true})
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: second, Count: 1, FinalStatus: iaasmock.StatusError})
		done := start(func() error { return r.delete(r.deleted(m)) })
		<-time.After(time.Minute)
		if left := r.onlyServer(); left.ID != first {
			t.Errorf("%s is left, want the one that hangs", left.ID)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.wantNothingLeft()
	})
}

// The foreign ID asks for a human, which takes the manager 10 minutes; the machine's own server
// only met a 503.
func TestAForeignIDDoesNotPutOffTheOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign, own := r.makeServer("m2", nil), r.makeServer("m1", nil)
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: own, Duration: 20 * time.Second, Status: http.StatusServiceUnavailable})
		m := withID(r.deleted(machine("m1")), providerIDOf(foreign))
		wantCode(t, r.delete(m), codes.Unavailable)
		<-time.After(30 * time.Second)
		wantCode(t, r.delete(m), codes.FailedPrecondition)
		if left := r.onlyServer(); left.ID != foreign {
			t.Errorf("%s is left, want the foreign one", left.ID)
		}
	})
}
