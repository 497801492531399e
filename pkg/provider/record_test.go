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
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the process remembers of each Machine between calls, and until when.

// withUID is the Machine with a UID, as the API server gives one to each object of a name.
func withUID(m *v1alpha1.Machine, uid string) *v1alpha1.Machine {
	m.UID = types.UID(uid)
	return m
}

// move lets the Secret and the class name the second project from now on.
func (r *rig) move() {
	r.secret = r.secret.DeepCopy()
	r.secret.Data["projectId"] = []byte(iaasmock.SecondProjectID)
	r.secret.Data["serviceAccountKey"] = keys().secondProject
	r.class = r.class.DeepCopy()
	r.setSpec(func(spec map[string]any) {
		spec["networking"] = map[string]any{"networkId": iaasmock.SecondProjectNetworkID}
	})
}

// One look-up's answer takes long. Meanwhile another call looks up and POSTs: the look-up began before that, so that
// its "none" is no reason for a second POST.
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

// Each POST whose answer is lost is waited for, not the first one alone.
func TestPOSTsThatAreLostLieSettleApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 3, DropBefore: true})
		r.mustCreateAsManager(machine("m1"))
		r.onlyServer()
		var posts []time.Time
		for _, call := range r.cloud.Calls() {
			if call.Operation == "CreateServer" {
				posts = append(posts, call.StartedAt)
			}
		}
		for i := 1; i < len(posts); i++ {
			if apart := posts[i].Sub(posts[i-1]); apart < provider.DefaultSettle ||
				apart > provider.DefaultSettle+20*time.Second {
				t.Errorf("POST %d is sent %s after the one before", i+1, apart)
			}
		}
		r.wantCalls("CreateServer", 4)
	})
}

// A deletion looks until the server of an earlier POST would show, also beside one that it finds at once.
func TestADeletionWaitsForEveryPOST(t *testing.T) {
	for name, prepare := range map[string]func(r *rig, m *v1alpha1.Machine){
		"a POST is under way": func(r *rig, m *v1alpha1.Machine) {
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: 10 * time.Second})
			r.startCreate(m)
			<-time.After(time.Second)
		},
		"a POST is under way, whose answer is lost": func(r *rig, m *v1alpha1.Machine) {
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: 10 * time.Second, DropAfter: true})
			r.startCreate(m)
			<-time.After(time.Second)
		},
		"the answer is lost, and another server was adopted": func(r *rig, m *v1alpha1.Machine) {
			r.makeServer("m1", nil)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: 10 * time.Second, DropAfter: true})
			r.mustCreate(m)
			if servers := r.cloud.Servers(); len(servers) != 2 {
				r.t.Errorf("%d servers, want one that was adopted and that of the POST", len(servers))
			}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(25*time.Second), iaasmock.WithDeleteDuration(time.Second))
			m := machine("m1")
			prepare(r, m)
			if err := insist(func() error { return r.remove(m) }); err != nil {
				t.Error(err)
			}
			<-time.After(time.Minute)
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

// Somebody edits the Secret or the class. While a server is, or may be, where the Machine's first calls were, a call
// for another project is refused, without an API call; else the Machine gets its server there.
func TestAMachineMovesOnceNothingIsLeftOfIt(t *testing.T) {
	const refused, moves = codes.FailedPrecondition, codes.OK
	inject := func(r *rig, fault iaasmock.Fault) {
		fault.Operation, fault.Count = "CreateServer", 1
		r.cloud.Inject(fault)
	}
	for name, row := range map[string]struct {
		prepare func(t *testing.T, r *rig, m *v1alpha1.Machine)
		uid     string
		want    codes.Code
	}{
		"nothing happened":              {func(*testing.T, *rig, *v1alpha1.Machine) {}, "u1", moves},
		"it has a server":               {func(_ *testing.T, r *rig, m *v1alpha1.Machine) { r.mustCreate(m) }, "u1", refused},
		"it has a server, without UIDs": {func(_ *testing.T, r *rig, m *v1alpha1.Machine) { r.mustCreate(m) }, "", refused},
		"another Machine of its name has a server": {func(_ *testing.T, r *rig, m *v1alpha1.Machine) {
			r.mustCreate(withUID(m.DeepCopy(), "u0"))
		}, "u1", moves},
		"a POST is under way": {func(_ *testing.T, r *rig, m *v1alpha1.Machine) {
			inject(r, iaasmock.Fault{Delay: 20 * time.Second})
			r.startCreate(m)
			<-time.After(time.Second)
		}, "u1", refused},
		"a POST is lost": {func(_ *testing.T, r *rig, m *v1alpha1.Machine) {
			inject(r, iaasmock.Fault{DropAfter: true})
			r.emptyFor(10 * time.Second)
			r.startCreate(m)
			<-time.After(time.Second)
		}, "u1", refused},
		"a POST was refused": {func(t *testing.T, r *rig, m *v1alpha1.Machine) {
			inject(r, iaasmock.Fault{Status: http.StatusUnprocessableEntity})
			wantCode(t, r.createErr(m), codes.InvalidArgument)
		}, "u1", moves},
		"its server is gone": {func(t *testing.T, r *rig, m *v1alpha1.Machine) {
			id := r.mustCreate(m).ProviderID
			<-time.After(time.Minute)
			r.removeServer(r.onlyServer().ID)
			wantCode(t, r.statusErr(withID(m, id)), codes.NotFound)
		}, "u1", moves},
		"its server is in ERROR and stays": {func(t *testing.T, r *rig, m *v1alpha1.Machine) {
			inject(r, iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: "broken"})
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, Status: http.StatusForbidden})
			wantCode(t, r.createErr(m), codes.Internal)
		}, "u1", refused},
		"it was deleted": {func(_ *testing.T, r *rig, m *v1alpha1.Machine) { r.mustCreate(m); r.mustRemove(m) }, "u1", moves},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withUID(machine("m1"), row.uid)
			row.prepare(t, r, m)
			before := r.cloud.CallCounts()
			r.move()
			err := r.createErr(m)
			if wantCode(t, err, row.want); err == nil {
				return
			}
			wantReason(t, err, provider.ReasonOtherProject)
			wantReason(t, r.remove(m), provider.ReasonOtherProject)
			if diff := cmp.Diff(before["CreateServer"], r.cloud.CallCounts()["CreateServer"]); diff != "" {
				t.Errorf("POSTs (-want +got):\n%s", diff)
			}
		})
	}
	bubble(t, "another region", func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		r.mustCreate(m)
		r.secret.Data["region"] = []byte(iaasmock.SecondRegion)
		wantReason(t, r.createErr(m), provider.ReasonOtherProject)
		wantReason(t, r.remove(m), provider.ReasonOtherProject)
		r.onlyServer()
		r.secret.Data["region"] = []byte(iaasmock.DefaultRegion)
		r.mustRemove(m)
		r.wantNothingLeft()
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

// A younger Machine has the name while the older one's deletion still runs: it loses neither its server nor its POST.
func TestADeletionForgetsNothingOfAYoungerMachine(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"its POST is under way":                          {AnswerDelay: 20 * time.Second},
		"its POST is under way, and is carried out late": {Delay: 20 * time.Second},
		"its POST's answer is lost":                      {DropAfter: true},
		"its POST is lost later":                         {DropAfter: true, Delay: 10 * time.Second},
	} {
		for _, lag := range []time.Duration{0, 20 * time.Second} {
			bubble(t, fmt.Sprint(name, ", lists lag for ", lag), func(t *testing.T) {
				r := newRig(t, iaasmock.WithListLag(lag))
				older := withUID(machine("m1"), "older")
				older.Spec.ProviderID = r.mustCreate(older).ProviderID
				<-time.After(time.Minute)
				r.removeServer(r.onlyServer().ID)
				<-time.After(time.Minute)
				younger := withUID(machine("m1"), "younger")
				fault.Operation, fault.Count = "CreateServer", 1
				r.cloud.Inject(fault)
				r.cloud.ResetCalls()
				done := r.startCreate(younger)
				removed := start(func() error {
					<-time.After(3 * time.Second)
					for r.cloud.CallCounts()["CreateServer"] == 0 && fault.Delay == 0 && fault.AnswerDelay == 0 {
						<-time.After(time.Second) // the first call only finds that the server is gone
					}
					return insist(func() error { return r.remove(older) })
				})
				first := <-done
				if err := <-removed; err != nil {
					t.Errorf("the older Machine's deletion: %v", err)
				}
				if first != nil {
					r.mustCreateAsManager(younger)
				}
				left := r.onlyServer()
				if response := r.mustCreate(younger); response.ProviderID != providerIDOf(left.ID) ||
					left.Status != iaasmock.StatusActive {
					t.Errorf("the younger Machine has %s, and %s is %s", response.ProviderID, left.ID, left.Status)
				}
				r.wantCalls("CreateServer", 1)
			})
		}
	}
}

// The API looks empty for so long that a server counts as gone; the next GET shows it.
func TestAServerThatIsShownAgainIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		m.Spec.ProviderID = r.mustCreate(m).ProviderID
		<-time.After(2 * time.Minute)
		r.emptyFor(20 * time.Second)
		began := time.Now()
		wantCode(t, r.statusErr(m), codes.NotFound)
		<-time.After(time.Until(began.Add(21 * time.Second)))
		wantCode(t, r.statusErr(m), codes.OK)
		if listed := r.list(); listed[m.Spec.ProviderID] != "m1" {
			t.Errorf("ListMachines lists %v", listed)
		}
		if again := r.mustCreate(withID(m, "")); again.ProviderID != m.Spec.ProviderID {
			t.Errorf("a creation answers %s, want %s", again.ProviderID, m.Spec.ProviderID)
		}
		r.onlyServer()
	})
}
