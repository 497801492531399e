// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestDeleteMachineWaitsUntilNothingIsLeft(t *testing.T) {
	byName := func(string) string { return "" }
	for name, row := range map[string]struct {
		state      string
		providerID func(serverID string) string
	}{
		"by its ID":       {iaasmock.StatusActive, providerIDOf},
		"by the Node's":   {iaasmock.StatusActive, func(id string) string { return "stackit://" + id }},
		"by OpenStack's":  {iaasmock.StatusActive, func(id string) string { return "openstack:///RegionOne/" + id }},
		"by name":         {iaasmock.StatusActive, byName},
		"while it boots":  {iaasmock.StatusCreating, byName},
		"in ERROR":        {iaasmock.StatusError, byName},
		"in RESCUE":       {"RESCUE", byName},
		"in a new status": {"SOMETHING-NEW", byName},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			id := r.makeServer("m1", nil)
			r.setStatus(id, row.state, "")
			r.makeServer("m1", nil) // goes along
			m := withID(r.deleted(machine("m1")), row.providerID(id))
			r.mustDelete(m)
			r.wantNothingLeft()
			r.mustDelete(m) // once more
		})
	}
}

func TestOneReadThatFailsProvesNothing(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"a gateway's 404":          {Status: http.StatusNotFound, Body: "<html>not found</html>", ContentType: "text/html"},
		"a 404 about the project":  {Status: http.StatusNotFound, Body: `{"code":404,"msg":"project not found"}`},
		"forbidden is not gone":    {Status: http.StatusForbidden, Body: `{"code":403,"msg":"Forbidden"}`},
		"an empty 500":             {Status: http.StatusInternalServerError, ContentType: "text/plain"},
		"the connection was reset": {DropBefore: true},
		"several resets in a row":  {DropBefore: true, Count: 9},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			fault.Operation, fault.Count = "GetServer", max(fault.Count, 1)
			r.cloud.Inject(fault)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			r.onlyServer()
			r.cloud.Inject(fault)
			if err := insist(func() error { return r.remove(m) }); err != nil {
				t.Error(err)
			}
			r.wantNothingLeft()
		})
	}
}

// Without a deletionTimestamp it is about one server of the project.
func TestDeleteMachineOfNothingInParticular(t *testing.T) {
	for name, m := range map[string]func(serverID string) *v1alpha1.Machine{
		"no ProviderID": func(string) *v1alpha1.Machine { return machine("m1") },
		"an orphan":     func(string) *v1alpha1.Machine { return &v1alpha1.Machine{ObjectMeta: orphan("m1", "").ObjectMeta} },
		"another's project": func(id string) *v1alpha1.Machine {
			return withID(machine("m1"), "stackit://"+iaasmock.SecondProjectID+"/"+id)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			wantCode(t, r.delete(m(r.makeServer("m1", nil))), codes.InvalidArgument)
			r.onlyServer()
		})
	}
}

// Both the DELETE and the next GET are answered 404 by chance.
func TestDeleteMachineBelievesNoTwoRandom404s(t *testing.T) {
	byProviderID := func(r *rig, id string) *v1alpha1.Machine {
		return withID(r.deleted(machine("m1")), providerIDOf(id))
	}
	byName := func(r *rig, _ string) *v1alpha1.Machine { return r.deleted(machine("m1")) }
	asOrphan := func(_ *rig, id string) *v1alpha1.Machine { return orphan("m1", id) }
	for name, row := range map[string]struct {
		age     time.Duration
		machine func(r *rig, id string) *v1alpha1.Machine
	}{
		"young, by ProviderID":              {10 * time.Second, byProviderID},
		"young, by name":                    {10 * time.Second, byName},
		"young, for the orphan collector":   {10 * time.Second, asOrphan},
		"settled, by ProviderID":            {time.Minute, byProviderID},
		"settled, by name":                  {time.Minute, byName},
		"settled, for the orphan collector": {time.Minute, asOrphan},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(25*time.Second), iaasmock.WithBootDuration(5*time.Second))
			r.mustCreate(machine("m1"))
			server := r.onlyServer()
			<-time.After(row.age - time.Since(server.CreatedAt))
			afterDelete, onDelete := randomNotFound, randomNotFound
			afterDelete.Match = func(*http.Request) bool { return r.cloud.CallCounts()["DeleteServer"] > 0 }
			onDelete.Operation = "DeleteServer"
			r.cloud.Inject(afterDelete)
			r.cloud.Inject(onDelete)
			m := row.machine(r, server.ID)
			r.mustDelete(m)
			for range 2 * len(r.cloud.Servers()) { // the orphan collector comes back by itself
				r.mustDelete(m)
			}
			if m.DeletionTimestamp == nil {
				<-time.After(deleteDuration)
			}
			r.wantNothingLeft()
		})
	}
}

func TestDeleteMachineOfWhatWasNeverAskedForIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithListLag(25*time.Second))
		start := time.Now()
		r.mustRemove(machine("m1"))
		wantWithin(t, start, time.Second)
	})
}

// A DELETE that is not accepted, fails or hangs is sent again, and keeps no other server from being deleted.
func TestWhatBecomesOfDELETEs(t *testing.T) {
	type fault = iaasmock.Fault
	notFound := fault{Count: 1, Status: http.StatusNotFound, Body: randomNotFound.Body}
	conflict := fault{Status: http.StatusConflict}
	const soon = 30 * time.Second
	for name, row := range map[string]struct {
		servers int
		byHand  []fault // of a DELETE by another's hand for the first server, if it is not nil
		faults  []fault // of ours: Server is the place of one
		want    codes.Code
		most    int // DELETEs, the first server's by hand among them
		within  time.Duration
		left    int // after a minute
	}{
		"it fails twice":             {1, nil, []fault{{Count: 2, FinalStatus: "ERROR"}}, codes.OK, 3, time.Minute, 0},
		"it is not accepted":         {1, nil, []fault{notFound}, codes.OK, 2, 15 * time.Second, 0},
		"not accepted, and then 409": {1, nil, []fault{notFound, {Count: 1, Status: 409}}, codes.OK, 3, soon, 0},
		"not accepted while it goes": {1, []fault{{Count: 1, NeverGone: true}}, []fault{notFound}, codes.OK, 3,
			3 * time.Minute, 1},
		"it is busy, and goes": {1, []fault{}, []fault{conflict}, codes.OK, 3, soon, 0},
		"two of three are refused": {3, nil, []fault{{Server: "0", Status: 403}, {Server: "1", Status: 403}},
			codes.PermissionDenied, 3 + 3 + 1 + 2, time.Minute, 2},
		"refused for a moment": {1, nil, []fault{{Status: 403, Duration: 5 * time.Second}}, codes.OK, 3, soon, 0},
		"one hangs, one fails": {2, nil, []fault{{Server: "0", Count: 2, NeverGone: true},
			{Server: "1", Count: 1, FinalStatus: iaasmock.StatusError}}, codes.OK, 5, 5 * time.Minute, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			places := map[string]string{}
			for i := range row.servers {
				places[fmt.Sprint(i)] = r.makeServer("m1", nil)
			}
			<-time.After(2 * time.Minute)
			for _, fault := range row.byHand {
				fault.Operation = "DeleteServer"
				r.cloud.Inject(fault)
			}
			if row.byHand != nil {
				r.deleteByHand(places["0"])
			}
			isFaulty := map[string]bool{}
			for _, fault := range row.faults {
				fault.Operation, fault.Server = "DeleteServer", places[fault.Server]
				isFaulty[fault.Server] = true
				r.cloud.Inject(fault)
			}
			began := time.Now()
			var took time.Duration
			done := start(func() error {
				defer func() { took = time.Since(began) }()
				return r.remove(m)
			})
			<-time.After(10 * time.Second)
			for _, server := range r.cloud.Servers() {
				if !isFaulty[""] && !isFaulty[server.ID] && server.Status != iaasmock.StatusDeleting {
					t.Errorf("%s is %s, whose DELETE nothing keeps", server.ID, server.Status)
				}
			}
			<-time.After(time.Minute)
			if left := r.cloud.Servers(); len(left) != row.left {
				t.Errorf("%d servers are left, want %d: %+v", len(left), row.left, left)
			}
			if wantCode(t, <-done, row.want); took > row.within {
				t.Errorf("it took %s, want at most %s", took, row.within)
			}
			r.cloud.ClearFaults()
			r.mustRemove(m)
			r.wantNothingLeft()
			if asked := r.cloud.CallCounts()["DeleteServer"]; asked > row.most {
				t.Errorf("%d DELETEs, want at most %d", asked, row.most)
			}
		})
	}
}

// What the orphan collector asks for.

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
		r.wantOnly(id)
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
				r.mustDelete(withID(orphan(name, ""), providerID))
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
		r.wantSeries(metricOrphans, map[string]float64{"accepted": 20, "refused": 0}) // the stuck one was asked for twice
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
		wantWithin(t, began, 6*time.Second)
	})
}

// refusals are what refuses each look-up until somebody corrects it.
var refusals = map[string]func(*rig){
	"the key is refused": func(r *rig) {
		r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: http.StatusBadRequest, Body: `{"error":"invalid_grant"}`})
	},
	"the key is none": func(r *rig) { r.secret.Data["serviceAccountKey"] = []byte("{}") },
	"no permission": func(r *rig) {
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusForbidden})
	},
	"a token that is not accepted": func(r *rig) {
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusUnauthorized})
	},
	"another's project":     func(r *rig) { r.secret.Data["projectId"] = []byte("abcdef00-0000-4000-8000-000000000001") },
	"no project":            func(r *rig) { delete(r.secret.Data, "projectId") },
	"a region without API":  func(r *rig) { r.secret.Data["region"] = []byte("eu99") },
	"no region":             func(r *rig) { delete(r.secret.Data, "region") },
	"no Secret data at all": func(r *rig) { r.secret.Data = nil },
	"a label is a number": func(r *rig) {
		r.setSpec(func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: 42} })
	},
	"the spec is a string": func(r *rig) { r.class.ProviderSpec.Raw = []byte(`"x"`) },
	"another provider":     func(r *rig) { r.class.Provider = "openstack" },
}

// A Machine that never had a server goes whatever is wrong: nothing can exist for it. The manager asks for its status
// first, and deletes nothing until that says NotFound.
func TestAMachineThatNeverHadAServerGoes(t *testing.T) {
	for name, refuse := range refusals {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			refuse(r)
			m := withUID(machine("m1"), "a")
			for range 40 { // the manager comes back every 3 minutes
				if r.createErr(m) == nil {
					t.Fatal("it has a server")
				}
				<-time.After(3 * time.Minute)
			}
			began := time.Now()
			wantCode(t, r.statusErr(r.deleted(m)), codes.NotFound)
			wantCode(t, r.remove(m), codes.OK)
			wantWithin(t, began, 90*time.Second)
			r.wantCalls("CreateServer", 0)
		})
	}
}

// failPOSTs lets POSTs of servers fail before anything is written, while the result is true.
func (r *rig) failPOSTs(err error) *atomic.Bool {
	fails, network := new(atomic.Bool), r.transport
	r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if fails.Load() && request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/servers") {
			return nil, err
		}
		return network.RoundTrip(request)
	})
	r.restart()
	return fails
}

// revokeKey has the token endpoint refuse the Secret's key, for which there is no token yet.
func (r *rig) revokeKey() {
	r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: http.StatusBadRequest, Body: `{"error":"invalid_grant"}`})
	r.secret.Data["serviceAccountKey"] = keys().rotated
}

// What may have a server stays until a look-up has worked.
func TestAMachineThatMayHaveAServerStays(t *testing.T) {
	const tooLate, early = 2 * time.Hour, time.Second
	met := func(r *rig) *v1alpha1.Machine { // and got no server
		m := withUID(machine("m1"), "a")
		mode := r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusBadRequest})
		wantCode(r.t.(*testing.T), r.createErr(m), codes.InvalidArgument)
		mode()
		return m
	}
	for name, prepare := range map[string]func(r *rig) *v1alpha1.Machine{
		"a POST was refused": met,
		"a POST was lost": func(r *rig) *v1alpha1.Machine {
			m := withUID(machine("m1"), "a")
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", DropAfter: true, Count: 1})
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true, Duration: time.Minute})
			wantCode(r.t.(*testing.T), r.createErr(m), codes.Unavailable)
			return m
		},
		"a POST was refused, the next one never written": func(r *rig) *v1alpha1.Machine {
			proxyRefuses := r.failPOSTs(errors.New("the proxy refused the connection"))
			m := met(r)
			proxyRefuses.Store(true)
			wantCode(r.t.(*testing.T), r.createErr(m), codes.Unavailable)
			return m
		},
		"a POST was answered 401, its repetition never written": func(r *rig) *v1alpha1.Machine {
			m := withUID(machine("m1"), "a")
			r.mustCreate(machine("m0")) // has a token
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusUnauthorized})
			works := r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: http.StatusBadRequest,
				Body: `{"error":"invalid_grant"}`})
			wantReason(r.t.(*testing.T), r.createErr(m), provider.ReasonCredentialsRefused)
			works()
			return m
		},
		"one of its name had a POST": func(r *rig) *v1alpha1.Machine { met(r); return withUID(machine("m1"), "b") },
		"the process restarted": func(r *rig) *v1alpha1.Machine {
			m := withUID(machine("m1"), "a")
			r.restartNow()
			return m
		},
		"it is older than the leadership": func(r *rig) *v1alpha1.Machine {
			r.restartNow()
			m := withUID(machine("m1"), "a")
			<-time.After(early)
			return m
		},
		"it is not known since its first hour": func(*rig) *v1alpha1.Machine {
			m := withUID(machine("m1"), "a")
			<-time.After(tooLate)
			return m
		},
		"it names a server":    func(*rig) *v1alpha1.Machine { return withID(machine("m1"), providerIDOf(someServerID)) },
		"it is from OpenStack": func(*rig) *v1alpha1.Machine { return migrated(machine("m1")) },
		"a look-up has found one": func(r *rig) *v1alpha1.Machine { // as after a control plane was lost
			m := withUID(machine("m1"), "a")
			r.makeRunning("m1")
			r.mustCreate(m)
			return m
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := prepare(r)
			r.revokeKey()
			if err := r.remove(m); reasonOf(err) != provider.ReasonCredentialsRefused {
				t.Errorf("the manager is told %v", err)
			}
		})
	}
	bubble(t, "the API is out of order", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusServiceUnavailable})
		wantCode(t, r.remove(machine("m1")), codes.Unavailable)
	})
	bubble(t, "it is not to go", func(t *testing.T) {
		r := newRig(t)
		refusals["the key is none"](r)
		wantCode(t, r.statusErr(machine("m1")), codes.Unauthenticated)
		wantCode(t, r.delete(machine("m1")), codes.Unauthenticated)
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
