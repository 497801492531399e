// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the driver does while one kind of API calls fails and others work.

// withoutSelector selects lists of the whole project.
func withoutSelector(request *http.Request) bool { return !request.URL.Query().Has("label_selector") }

// together calls f for each of the machines at a time, and returns the errors.
func together(machines []*v1alpha1.Machine, f func(m *v1alpha1.Machine) error) []error {
	var results []<-chan error
	for _, m := range machines {
		results = append(results, start(func() error { return f(m) }))
	}
	errs := make([]error, len(results))
	for i, result := range results {
		errs[i] = <-result
	}
	return errs
}

// wantNone checks that none of the calls failed.
func wantNone(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func machines(n int) []*v1alpha1.Machine {
	var all []*v1alpha1.Machine
	for i := range n {
		all = append(all, machine(fmt.Sprint("machine-", i)))
	}
	return all
}

// Without GETs by ID lists tell all.
func TestAnAPIWithoutGETs(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"they answer 503":     {Status: http.StatusServiceUnavailable},
		"they answer 403":     {Status: http.StatusForbidden},
		"they never answer":   {NeverAnswers: true, Status: http.StatusGatewayTimeout},
		"connections are cut": {DropBefore: true},
	} {
		for _, n := range []int{1, 3, 8} {
			bubble(t, fmt.Sprint(name, ", machines: ", n), func(t *testing.T) {
				r := newRig(t)
				fault.Operation = "GetServer"
				r.cloud.Inject(fault)
				all := machines(n)
				began := time.Now()
				wantNone(t, together(all, func(m *v1alpha1.Machine) error { return r.createErr(m) }))
				wantWithin(t, began, time.Minute)
				<-time.After(time.Minute)
				began = time.Now()
				wantNone(t, together(all, func(m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) }))
				if took := time.Since(began); took > 3*time.Minute { // a GET without an answer ends after two
					t.Errorf("the deletion took %s", took)
				}
				r.wantNothingLeft()
			})
		}
	}
}

// Some APIs answer 403 for a server that is gone.
func TestADeletedServerThatAnswers403(t *testing.T) {
	for name, row := range map[string]struct {
		restarted, isLast bool
		atMost            time.Duration
	}{
		"deleted by this process":                   {false, false, deleteDuration + 5*time.Second},
		"the project's last, by this process":       {false, true, deleteDuration + 5*time.Second},
		"deleted by a predecessor, others are left": {true, false, time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if !row.isLast {
				r.mustCreate(machine("stays"))
			}
			all := machines(3)
			for i := range all {
				all[i] = withID(all[i], r.mustCreate(all[i]).ProviderID)
			}
			<-time.After(time.Minute)
			for _, m := range all {
				r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", After: 3 * time.Second, Status: http.StatusForbidden,
					Match: func(request *http.Request) bool {
						return strings.HasSuffix(m.Spec.ProviderID, request.URL.Path[len(request.URL.Path)-36:])
					}})
			}
			if row.restarted {
				for _, m := range all {
					r.deleteByHand(m.Spec.ProviderID[len(m.Spec.ProviderID)-36:])
				}
				<-time.After(time.Minute)
				r.restartNow()
				<-time.After(time.Minute)
			}
			began := time.Now()
			for _, err := range together(all, func(m *v1alpha1.Machine) error {
				if _, err := r.status(r.deleted(m)); err != nil {
					wantCode(t, err, codes.NotFound)
				}
				return r.delete(r.deleted(m))
			}) {
				if err != nil {
					t.Error(err)
				}
			}
			wantWithin(t, began, row.atMost)
			if left := r.cloud.Servers(); len(left) > 0 && (row.isLast || len(left) > 1 || left[0].Name != "stays") {
				t.Errorf("%+v are left", left)
			}
		})
	}
}

// The account lost its role: what it may still list is empty, and proves nothing.
func TestAnAccountThatLostItsRoleProvesNoServerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(time.Minute)
		r.restartNow()
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusForbidden})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true})
		if err := r.delete(r.deleted(m)); err == nil {
			t.Error("the manager is told that the server is gone")
		}
		r.onlyServer()
	})
}

// Lists fail, for a Machine whose ProviderID is known.
func TestADeletionWithoutListsAsksForTheServerAtOnce(t *testing.T) {
	unavailable := iaasmock.Fault{Status: http.StatusServiceUnavailable}
	silent := iaasmock.Fault{NeverAnswers: true, Status: http.StatusGatewayTimeout}
	for name, row := range map[string]struct {
		lists iaasmock.Fault
		// getsFail is for how long GETs fail, too: the one that would let the server be deleted among them.
		getsFail, within time.Duration
	}{
		"they answer 503":              {unavailable, 0, 30 * time.Second},
		"they never answer":            {silent, 0, 30 * time.Second},
		"and so do GETs, for a moment": {unavailable, 20 * time.Second, 2 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			<-time.After(time.Minute)
			r.makeServer("m1", nil)
			row.lists.Operation = "ListServers"
			r.cloud.Inject(row.lists)
			if row.getsFail > 0 {
				r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Duration: row.getsFail, Status: unavailable.Status})
			}
			done := start(func() error { return r.delete(r.deleted(m)) })
			<-time.After(row.within)
			for _, left := range r.cloud.Servers() {
				if providerIDOf(left.ID) == m.Spec.ProviderID && left.Status != iaasmock.StatusDeleting {
					t.Errorf("the server is %s after %s", left.Status, row.within)
				}
			}
			<-time.After(time.Minute)
			if lists := r.cloud.CallCounts()["ListServers"]; lists > 60 {
				t.Errorf("%d lists in %s", lists, row.within+time.Minute)
			}
			r.cloud.ClearFaults()
			if err := <-done; err != nil {
				t.Error(err)
			}
			r.wantNothingLeft() // of the other one, too
		})
	}
}

// Lists of the whole project fail for ever, those by label work.
func TestAnAPIWithoutListsOfTheProject(t *testing.T) {
	type prepare func(*rig, *v1alpha1.Machine) *v1alpha1.Machine
	create := func(r *rig, m *v1alpha1.Machine) error { return r.createErr(m) }
	remove := func(r *rig, m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) }
	none := func(_ *rig, m *v1alpha1.Machine) *v1alpha1.Machine { return m }
	running := func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine { return withID(m, r.makeRunning("m1")) }
	// gone was deleted by another's hand after this process made it.
	gone := func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine {
		m = withID(m, r.mustCreate(m).ProviderID)
		r.deleteByHand(r.onlyServer().ID)
		<-time.After(time.Minute)
		return m
	}
	withoutID := func(with prepare) prepare {
		return func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine { return withID(with(r, m), "") }
	}
	for how, fault := range map[string]iaasmock.Fault{
		"answer 504": {Status: http.StatusGatewayTimeout}, "answer 413": {Status: http.StatusRequestEntityTooLarge},
		"do not answer": {NeverAnswers: true, Status: http.StatusGatewayTimeout},
	} {
		for name, row := range map[string]struct {
			prepare   prepare
			restarted bool
			call      func(r *rig, m *v1alpha1.Machine) error
			atMost    time.Duration
			// unanswered is what lists that never answer add to it.
			unanswered time.Duration
			left       int
		}{
			"a server is adopted": {withoutID(running), true, create, time.Minute, 0, 1},
			"a server is deleted": {withoutID(running), true, func(r *rig, m *v1alpha1.Machine) error {
				done := start(func() error { return r.delete(r.deleted(m)) })
				<-time.After(time.Minute)
				r.wantNothingLeft()
				return <-done // it may have another one
			}, 14 * time.Minute, 0, 0},
			"a server is deleted by its ID": {running, true, remove, 15 * time.Minute, 3 * time.Minute, 0},
			"a server from OpenStack is deleted": {func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine {
				return withID(migrated(m), providerIDOf(r.fromOpenStack("m1")))
			}, true, remove, 15 * time.Minute, 3 * time.Minute, 0},
			"a server is made": {none, true, func(r *rig, m *v1alpha1.Machine) error {
				_, err := r.createAsManager(m)
				return err
			}, 14 * time.Minute, 0, 1},
			"there is none to delete":                {none, true, remove, 14 * time.Minute, 0, 0},
			"a predecessor's server is gone":         {gone, true, remove, 15 * time.Minute, 3 * time.Minute, 0},
			"a known server is gone, creation":       {withoutID(gone), false, create, 13 * time.Minute, 0, 1},
			"a known server is gone, deletion":       {withoutID(gone), false, remove, 13 * time.Minute, 0, 0},
			"a known server is gone, deletion by ID": {gone, false, remove, 13 * time.Minute, 0, 0},
		} {
			bubble(t, name+", lists "+how, func(t *testing.T) {
				r := newRig(t)
				m := row.prepare(r, machine("m1"))
				if row.restarted {
					r.restartNow()
				}
				fault.Operation, fault.Match = "ListServers", withoutSelector
				r.cloud.Inject(fault)
				began := time.Now()
				err := row.call(r, m)
				for n := 0; reasonOf(err) == provider.ReasonTimedOut && n < 3; n++ {
					<-time.After(5 * time.Second)
					err = row.call(r, m)
				}
				atMost := row.atMost
				if fault.NeverAnswers {
					atMost += row.unanswered
				}
				if took := time.Since(began); err != nil || took > atMost {
					t.Errorf("%v after %s, want none within %s", err, took, atMost)
				}
				if row.left == 0 {
					r.wantNamed("m1", 0, 0, 0)
				} else {
					r.onlyServer()
				}
			})
		}
	}
}

// A class without a cluster label, whose server lost its class label, after a failover.
func TestAServerThatLostALabelGetsNoSecond(t *testing.T) {
	for name, row := range map[string]struct {
		withoutCluster, withoutProjectLists bool
		lost                                string
	}{
		"its class label": {true, false, provider.StackitMachineClassLabel},
		"its class label, without lists of the project":   {true, true, provider.StackitMachineClassLabel},
		"its cluster label":                               {false, false, clusterLabel},
		"its cluster label, without lists of the project": {false, true, clusterLabel},
		"its machine label":                               {false, false, provider.StackitMachineLabel},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.withoutCluster {
				r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
			}
			m := machine("m1")
			r.mustCreate(m)
			r.relabel(r.onlyServer().ID, map[string]any{row.lost: nil})
			if row.withoutProjectLists {
				r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector, Status: http.StatusGatewayTimeout})
			}
			r.restartNow()
			_, err := r.createAsManager(m)
			wantCode(t, err, codes.FailedPrecondition)
			if reason := reasonOf(err); reason != provider.ReasonNotOurs {
				t.Errorf("the reason is %q", reason)
			}
			r.onlyServer()
		})
	}
}

// A missing permission is told as one, and soon.
func TestAMissingPermissionIsToldSoon(t *testing.T) {
	running := func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine { return withID(m, r.makeRunning(m.Name)) }
	migratedOne := func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine {
		return withID(migrated(m), providerIDOf(r.fromOpenStack(m.Name)))
	}
	both, lists := []string{"GetServer", "ListServers"}, []string{"ListServers"}
	for name, row := range map[string]struct {
		operations []string
		after      time.Duration
		make       func(r *rig, m *v1alpha1.Machine) *v1alpha1.Machine
		// isGone: as in each later call for a Machine whose first one asked for the deletion.
		isGone bool
	}{
		"GETs and lists of servers":                            {both, 0, running, false},
		"lists of servers":                                     {lists, 0, running, false},
		"GETs and lists of servers, in the middle of the wait": {both, 3 * time.Second, running, false},
		"lists, the server is gone":                            {lists, 0, running, true},
		"lists, the server from OpenStack is gone":             {lists, 0, migratedOne, true},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := row.make(r, machine("m1"))
			if row.isGone {
				r.deleteByHand(serverOf(m))
			}
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
			for _, operation := range row.operations {
				r.cloud.Inject(iaasmock.Fault{Operation: operation, After: row.after, Status: http.StatusForbidden})
			}
			began := time.Now()
			err := r.delete(r.deleted(m))
			wantCode(t, err, codes.PermissionDenied)
			if took := time.Since(began); took > time.Minute || !strings.Contains(err.Error(), "listing servers") &&
				!strings.Contains(err.Error(), "reading a server") {
				t.Errorf("%v after %s", err, took)
			}
		})
	}
}

// The Machines of a cluster are deleted one after another.
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
			wantWithin(t, began, time.Minute)
		}
	})
}

func TestAPermissionThatIsMissingInACreationIsToldSoon(t *testing.T) {
	for name, row := range map[string]struct {
		operations []string
		says       string
	}{
		"GETs and lists of servers": {[]string{"GetServer", "ListServers"}, "listing servers"},
		"NICs":                      {[]string{"ListServerNICs", "ListNics"}, "NICs"},
		"updates of NICs":           {[]string{"UpdateNic"}, "updating a NIC"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			for _, operation := range row.operations {
				r.cloud.Inject(iaasmock.Fault{Operation: operation, After: time.Second, Status: http.StatusForbidden})
			}
			began := time.Now()
			_, err := r.create(machine("m1"))
			wantCode(t, err, codes.PermissionDenied)
			if took := time.Since(began); took > bootDuration+time.Minute || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v after %s", err, took)
			}
		})
	}
}

// An API answers 403 by mistake for a moment, now and then.
func TestAMomentOf403EndsNoCreation(t *testing.T) {
	for name, faults := range map[string][]iaasmock.Fault{
		"to all reads, twice": {
			{Operation: iaasmock.OperationIaaS, After: 20 * time.Second, Duration: 5 * time.Second},
			{Operation: iaasmock.OperationIaaS, After: 70 * time.Second, Duration: 5 * time.Second}},
		"to reads of NICs": {{Operation: "ListNics", Duration: 105 * time.Second}, {Operation: "ListServerNICs", Duration: 105 * time.Second}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(90*time.Second))
			for _, fault := range faults {
				fault.Status = http.StatusForbidden
				r.cloud.Inject(fault)
			}
			r.mustCreate(machine("m1"))
		})
	}
}

// What fails while a call waits is named at its end.
func TestALateEndNamesTheCallThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Status: http.StatusBadGateway})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListNics", Status: http.StatusBadGateway})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.DeadlineExceeded)
		wantSaid(t, err.Error(), "NICs: status 502")
	})
}

// Servers that hang in DELETING slide out of lists that are cut off, while GETs show them.
func TestAListThatIsCutOffProvesNoServerGone(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"a minute later": 70 * time.Second, "after the DELETEs were repeated": 150 * time.Second,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			all := machines(30) // enough for lists
			together(all, func(m *v1alpha1.Machine) error { return r.createErr(m) })
			<-time.After(time.Minute)
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: after, CutOffAt: len(all) / 2})
			for _, err := range together(all, func(m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) }) {
				wantCode(t, err, codes.DeadlineExceeded)
			}
		})
	}
}

// A wait that nobody expects is told, once.
func TestAnUnexpectedAbsenceIsOneLogLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		r.removeServer(r.onlyServer().ID)
		<-time.After(time.Minute)
		var level klog.Level
		if err := level.Set("2"); err != nil {
			t.Fatal(err)
		}
		log := logOf(t, func() {
			r.mustDelete(r.deleted(m))
		})
		if err := level.Set("0"); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(log, "nobody asked for its deletion"); lines != 1 {
			t.Errorf("%d lines tell of the wait, want 1:\n%s", lines, log)
		}
	})
}

// The project looks empty where an outage begins, and again where it ends.
func TestTwoEmptyMomentsAroundAnOutageProveNothing(t *testing.T) {
	create := func(r *rig, m *v1alpha1.Machine) { r.mustCreate(m); r.onlyServer() }
	deleted := func(r *rig, m *v1alpha1.Machine) {
		if err := r.delete(withID(r.deleted(m), providerIDOf(r.onlyServer().ID))); err != nil {
			r.t.Error(err)
		}
		r.wantNothingLeft()
	}
	fails := iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusInternalServerError}
	hangs := iaasmock.Fault{Operation: iaasmock.OperationIaaS, NeverAnswers: true, Status: http.StatusGatewayTimeout}
	for name, row := range map[string]struct {
		call   func(r *rig, m *v1alpha1.Machine)
		led    time.Duration
		outage iaasmock.Fault
		lasts  time.Duration
	}{
		"a creation, the API fails":        {create, time.Minute, fails, 55 * time.Second},
		"a creation, the API hangs":        {create, time.Minute, hangs, 55 * time.Second},
		"a creation soon after a failover": {create, 0, fails, 20 * time.Second},
		"a deletion, the API fails":        {deleted, time.Minute, fails, 55 * time.Second},
		"a deletion, the API hangs":        {deleted, time.Minute, hangs, 55 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			r.makeServer("m1", nil)
			r.restartNow() // a predecessor's
			<-time.After(row.led)
			row.outage.After, row.outage.Duration = 1500*time.Millisecond, row.lasts
			r.emptyFor(row.outage.After)
			r.cloud.Inject(row.outage)
			time.AfterFunc(row.outage.After+row.lasts, func() { r.emptyFor(12 * time.Second) })
			row.call(r, m)
		})
	}
}

// Lists of the project failed for long, and nobody has asked for one since.
func TestListsOfTheProjectThatFailedOnceAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other, m := machine("m0"), withID(machine("m1"), r.makeRunning("m1"))
		r.deleteByHand(r.onlyServer().ID)
		<-time.After(time.Minute)
		r.makeServer("m1", func(labels map[string]any) { delete(labels, provider.StackitMachineLabel) })
		r.restartNow()
		works := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: withoutSelector, Status: http.StatusRequestEntityTooLarge})
		for r.delete(r.deleted(other)) != nil {
			<-time.After(5 * time.Second)
		}
		works()
		<-time.After(40 * time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Duration: 5 * time.Second, Status: http.StatusInternalServerError})
		wantReason(t, r.delete(r.deleted(m)), provider.ReasonNotOurs)
		r.onlyServer()
	})
}
