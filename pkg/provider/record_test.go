// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the process remembers of each Machine between calls, and until when.

// withUID is the Machine with a UID, as the API server gives one to each object of a name.
func withUID(m *v1alpha1.Machine, uid string) *v1alpha1.Machine {
	m.UID = types.UID(uid)
	return m
}

// One list's answer takes long. Meanwhile another call lists and POSTs: the first list began before that, so that its
// "none" is no reason for a second POST.
func TestALookUpFromBeforeAPOSTAllowsNoOther(t *testing.T) {
	for name, post := range map[string]iaasmock.Fault{
		"the POST is answered":       {AnswerDelay: time.Second},
		"the POST is under way":      {AnswerDelay: 20 * time.Second},
		"the POST's answer is lost":  {DropAfter: true},
		"it is carried out late":     {DropAfter: true, Delay: 5 * time.Second},
		"the POST is answered a 500": {Executed: true, Status: http.StatusInternalServerError},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.list() // fetches the token
			m := machine("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, AnswerDelay: 12 * time.Second})
			post.Operation, post.Count = "CreateServer", 1
			r.cloud.Inject(post)
			first := r.startCreate(m)
			<-time.After(time.Second)
			second := r.startCreate(m)
			for _, err := range []error{<-first, <-second} {
				if code := reasonOf(err).Code(); err != nil && code != codes.Aborted && code != codes.Unavailable {
					t.Errorf("the manager is told %v", err)
				}
			}
			r.mustCreateAsManager(m)
			r.onlyServer()
			r.wantCalls("CreateServer", 1)
		})
	}
}

// A deletion ends on a list that shows the server of every POST, also beside a server that it finds at once.
func TestADeletionWaitsForEveryPOST(t *testing.T) {
	type made = *v1alpha1.Machine
	post := func(r *rig, m made, fault iaasmock.Fault) {
		fault.Operation, fault.Count = "CreateServer", 1
		r.cloud.Inject(fault)
		r.startCreate(m)
		<-time.After(time.Minute) // one that names a server that is gone is sure of that first
	}
	named := func(r *rig) made { // the Machine has a ProviderID, and its server is gone
		m := withID(machine("m1"), r.makeRunning("m1"))
		<-time.After(30 * time.Second)
		r.removeServer(serverOf(m))
		return m
	}
	for name, prepare := range map[string]func(r *rig) made{
		"a POST is under way": func(r *rig) made {
			m := machine("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: 10 * time.Second})
			r.startCreate(m)
			<-time.After(time.Second)
			return m
		},
		"its answer was lost": func(r *rig) made {
			m := machine("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
			wantCode(r.t.(*testing.T), r.createErr(m), codes.Unavailable)
			return m
		},
		"its answer was lost, the Machine has a ProviderID": func(r *rig) made {
			m := named(r)
			post(r, m, iaasmock.Fault{Delay: 30 * time.Second, DropAfter: true})
			return m
		},
		"its sidecar was killed": func(r *rig) made {
			m := machine("m1")
			r.makeServer("m1", nil)
			r.restartNow()
			return m
		},
		"its sidecar was killed, and another server is there": func(r *rig) made {
			m := machine("m1")
			r.makeRunning("m1")
			<-time.After(30 * time.Second)
			r.makeServer("m1", nil)
			r.restartNow()
			return m
		},
		"its sidecar was killed, the Machine has a ProviderID": func(r *rig) made {
			m := named(r)
			r.makeServer("m1", nil)
			r.restartNow()
			return m
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(25*time.Second))
			m := prepare(r)
			if err := insist(func() error { return r.remove(m) }); err != nil {
				t.Error(err)
			}
			r.wantNothingLeft()
		})
	}
}

// What nothing can have been made for is not waited for.
func TestNoDoubtIsLeft(t *testing.T) {
	refused := iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusUnprocessableEntity}
	lost := iaasmock.Fault{Operation: "CreateServer", Count: 1, DropBefore: true}
	create, remove := (*rig).createErr, (*rig).remove
	for name, row := range map[string]struct {
		prepare func(t *testing.T, r *rig)
		call    func(r *rig, m *v1alpha1.Machine) error
		within  time.Duration
	}{
		"by a refused POST, a creation": {func(t *testing.T, r *rig) {
			r.cloud.Inject(refused)
			wantCode(t, r.createErr(machine("m1")), codes.InvalidArgument)
		}, create, bootDuration + 4*time.Second},
		"by a refused POST, a deletion": {func(t *testing.T, r *rig) {
			r.cloud.Inject(refused)
			wantCode(t, r.createErr(machine("m1")), codes.InvalidArgument)
		}, remove, 2 * time.Second},
		"by a server that a read showed and that goes": {func(_ *testing.T, r *rig) { r.mustCreate(machine("m1")) },
			remove, deleteDuration + 4*time.Second},
		"by a lost POST of a Machine that was deleted": {func(t *testing.T, r *rig) {
			r.cloud.Inject(lost)
			wantCode(t, r.createErr(withUID(machine("m1"), "first")), codes.Unavailable)
			r.mustRemove(withUID(machine("m1"), "first"))
		}, create, bootDuration + 4*time.Second},
		"by a server of a Machine that was deleted": {func(_ *testing.T, r *rig) {
			r.mustCreate(withUID(machine("m1"), "first"))
			r.mustRemove(withUID(machine("m1"), "first"))
		}, create, bootDuration + 4*time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			row.prepare(t, r)
			began := time.Now()
			if err := row.call(r, withUID(machine("m1"), "second")); err != nil {
				t.Error(err)
			}
			wantWithin(t, began, row.within)
		})
	}
}

// The manager's cache may show a Machine as it was before its server was replaced: what was seen of the old one's NICs
// is not said of the new one's.
func TestANewServersNICsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		m := machine("m1")
		first := r.mustCreate(m)
		<-time.After(time.Minute)
		r.removeServer(r.onlyServer().ID)
		second := r.mustCreateAsManager(m)
		nic := nicOf(t, r, r.onlyServer())
		if first.ProviderID == second.ProviderID || second.Addresses[0].Address != nic.IPv4 {
			t.Errorf("%+v is the answer, after %+v; the server's address is %s", second, first, nic.IPv4)
		}
		if diff := cmp.Diff([]string{"100.64.0.0/12"}, nic.AllowedAddresses); diff != "" {
			t.Errorf("allowed addresses (-want +got):\n%s", diff)
		}
	})
}

// Two namespaces, two clusters, Machines of one name.
func TestMachinesOfAnotherNamespaceAreOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		here := r.mustCreate(m).ProviderID
		m, class := m.DeepCopy(), r.class
		m.Namespace, r.class = "other", class.DeepCopy()
		r.setSpec(func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: "shoot-b"} })
		wantCode(t, r.statusErr(m), codes.NotFound)
		if there := r.mustCreate(m).ProviderID; there == here {
			t.Errorf("both have server %s", there)
		}
		r.mustRemove(m)
		r.wantOnly(serverOf(withID(m, here)))
	})
}

// InitializeMachine makes no call for a server that this process has seen complete: so it shows what is remembered.
func TestWhatIsRememberedEndsAnHourAfterItsLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m, other := machine("m1"), machine("m2")
		m.Spec.ProviderID = r.mustCreate(m).ProviderID
		other.Spec.ProviderID = r.mustCreate(other).ProviderID
		initialize := func() (calls int) {
			wantCode(t, r.statusErr(other), codes.OK) // what is old may be dropped with another Machine's call
			r.cloud.ResetCalls()
			if _, err := r.initialize(m); err != nil {
				t.Fatal(err)
			}
			return len(r.cloud.Calls())
		}
		for range 13 {
			<-time.After(50 * time.Minute)
			if calls := initialize(); calls > 0 {
				t.Fatalf("%d calls: it was forgotten while it was in use", calls)
			}
		}
		<-time.After(65 * time.Minute)
		if calls := initialize(); calls == 0 {
			t.Error("it is remembered after more than an hour without use")
		}
	})
}
