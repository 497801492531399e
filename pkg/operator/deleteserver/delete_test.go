// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/deleteserver"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Right before each DELETE the server, the Machines and the Nodes are looked at.
func TestLooksRightBeforeEachDELETE(t *testing.T) {
	const names = "Machine shoot--demo/lost-1 names it"
	for name, row := range map[string]struct {
		change func(*rig)
		// outcome is refused unless it is set.
		outcome deleteserver.Outcome
		says    string
	}{
		"a Machine appears":        {(*rig).appear, refused, names},
		"a Node appears":           {(*rig).join, refused, "Node n of the target cluster runs on this server"},
		"the last other Node goes": {(*rig).leave, refused, "none of the 0 Nodes"},
		"the MachineClass goes":    {(*rig).declass, refused, "it belongs to another cluster than the MachineClasses"},
		"its cluster's label changes": {func(r *rig) { r.label(testrig.ClusterKey, "x") }, refused,
			"changed since it was shown"},
		"its name changes": {func(r *rig) { r.update(iaas.UpdateServerPayload{Name: new("x")}) }, refused,
			"changed since it was shown"},
		"its metadata changes": {func(r *rig) { r.metadata("a", "b") }, refused, "changed since it was shown"},
		"Machines cannot be read": {func(r *rig) { r.unlisted = &v1alpha1.MachineList{} }, refused,
			"cannot identify orphans without"},
		"it cannot be read": {func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: getOperation, Status: 502}) },
			unknown, "the server could not be read again, no DELETE was sent"},
		"it is not shown": {func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: getOperation, Status: 404}) },
			unknown, "the server could not be read again, no DELETE was sent"},
		"the server's addresses cannot be read": {
			func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Status: 502}) },
			unknown, "the server's addresses cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				plan := r.look(lost)
				<-time.After(6 * time.Second) // Machines and Nodes are read again
				row.change(r)
				r.delete(t.Context(), plan)
				expect(t, plan.Servers[0], row.outcome, row.says)
				if sent := r.Cloud.CallCounts()[deleteOperation]; sent > 0 {
					t.Errorf("%d DELETEs", sent)
				}
			})
		})
	}
}

// What is reported gone is gone, and what is there is reported with its state.
func TestTellsWhatBecameOfIt(t *testing.T) {
	deletes := func(fault iaasmock.Fault) []iaasmock.Fault {
		fault.Operation = deleteOperation
		return []iaasmock.Fault{fault}
	}
	hangs := iaasmock.Fault{Operation: deleteOperation, NeverGone: true}
	hidden := iaasmock.Fault{Operation: getOperation, Status: 404, After: 5 * time.Minute}
	lists := func(fault iaasmock.Fault) []iaasmock.Fault {
		fault.Operation = "ListServers"
		return []iaasmock.Fault{fault}
	}
	absent := iaasmock.Fault{Operation: getOperation, Status: 404, After: time.Second, Duration: 10 * time.Second}
	empty := func(after, duration time.Duration) iaasmock.Fault {
		return iaasmock.Fault{EmptyProject: true, After: after, Duration: duration}
	}
	const nothingProved, nothingShown = "a read did not find the server, but that does not prove that it is gone",
		"shows no server at all in project"
	for name, row := range map[string]struct {
		faults  []iaasmock.Fault
		outcome deleteserver.Outcome
		says    string
	}{
		"a DELETE is answered 404 by chance": {deletes(iaasmock.Fault{Status: 404, Count: 1}), stillThere,
			"it is ACTIVE, and its deletion is not retried: "},
		"a DELETE does nothing": {deletes(iaasmock.Fault{Status: 204, Count: 1}), stillThere,
			"it is ACTIVE, and its deletion is not retried: "},
		"the answer to a DELETE is lost": {deletes(iaasmock.Fault{Status: 504, Executed: true, Count: 1}), gone, ""},
		"no DELETE does anything": {deletes(iaasmock.Fault{Status: 204}), stillThere,
			"it is ACTIVE, and its deletion is not retried: "},
		"every DELETE is answered 404": {deletes(iaasmock.Fault{Status: 404}), stillThere,
			"it is ACTIVE, and its deletion is not retried: "},
		"every DELETE is answered 503": {deletes(iaasmock.Fault{Status: 503}), stillThere,
			"it is ACTIVE, and its deletion is not retried: "},
		"every DELETE is answered 403": {deletes(iaasmock.Fault{Status: 403}), stillThere,
			"it is ACTIVE, and its deletion is not retried: "},
		"a DELETE is answered 403, and done": {deletes(iaasmock.Fault{Status: 403, Executed: true}), gone, ""},
		"every DELETE ends in ERROR": {deletes(iaasmock.Fault{FinalStatus: "ERROR"}), stillThere,
			"it is ERROR, and its deletion is not retried: "},
		"it hangs in DELETING": {[]iaasmock.Fault{hangs}, stillThere,
			"it is DELETING, and its deletion is not retried: "},
		"it hangs, and then is hidden":        {[]iaasmock.Fault{hangs, hidden}, unknown, nothingProved},
		"reads are answered 404 for a moment": {[]iaasmock.Fault{absent}, gone, ""},
		"the project is empty for a moment":   {[]iaasmock.Fault{empty(time.Second, 10*time.Second)}, gone, ""},
		"the project is empty for a minute": {[]iaasmock.Fault{empty(0, time.Minute)}, unknown,
			"the server could not be read again"},
		"it hangs, and the project is empty": {
			[]iaasmock.Fault{hangs, empty(6*time.Second, 25*time.Second)}, stillThere,
			"it is DELETING, and its deletion is not retried: "},
		"it hangs, and the project is empty for longer": {
			[]iaasmock.Fault{hangs, empty(6*time.Second, 3*time.Minute)}, unknown, nothingShown},
		"it hangs, and the project is empty later": {
			[]iaasmock.Fault{hangs, empty(90*time.Second, 11*time.Second)}, stillThere,
			"it is DELETING, and its deletion is not retried: "},
		"lists are empty": {lists(iaasmock.Fault{EmptyList: true}), unknown, nothingShown},
		"lists are old":   {lists(iaasmock.Fault{Stale: 30 * time.Second}), gone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				plan := r.look(lost)
				for _, fault := range row.faults {
					r.Cloud.Inject(fault)
				}
				r.delete(t.Context(), plan) // which checks what is reported gone
				expect(t, plan.Servers[0], row.outcome, row.says)
			})
		})
	}
}

// Each is deleted by its own ID.
func TestServersOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.ids["first"] = r.ids[lost]
		r.make(lost)
		<-time.After(2 * hour)
		plan := r.look("first", lost)
		r.delete(t.Context(), plan)
		for _, server := range plan.Servers {
			expect(t, server, gone, "")
		}
	})
}

func TestDeletesInEachRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, region := range []string{iaasmock.DefaultRegion, iaasmock.SecondRegion} {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: region},
				Data: map[string][]byte{
					"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(region), "userData": nil,
				},
			}
			class := testrig.Class(region, map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
			class.SecretRef.Name = region
			r.Add(secret, class)
		}
		r.ids["abroad"] = r.ServerAt(iaasmock.SecondRegion, iaasmock.SecondRegionNetworkID,
			"abroad", testrig.Labels("abroad", "worker", testrig.OwnCluster))
		r.ServerAt(iaasmock.SecondRegion, iaasmock.SecondRegionNetworkID, "another", nil)
		<-time.After(2 * hour)
		plan := r.look("abroad", lost, "worker-0") // the cluster's Nodes are servers of the other region
		r.delete(t.Context(), plan)
		expect(t, plan.Servers[0], gone, "")
		expect(t, plan.Servers[1], gone, "")
		expect(t, plan.Servers[2], refused, "names it")
		if len(plan.Places) != 2 {
			t.Error(plan.Places)
		}
	})
}

// Ten at once, and one list of Machines serves them, also where it takes its time.
func TestManyWhereListsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("more-%d", i))
			r.make(names[i])
		}
		<-time.After(2 * hour)
		var lists atomic.Int32
		r.Funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			lists.Add(1)
			<-time.After(7 * time.Second)
			return c.List(ctx, list, o...)
		}
		plan := r.look(names...)
		before := lists.Load()
		r.delete(t.Context(), plan)
		for _, server := range plan.Servers {
			expect(t, server, gone, "")
		}
		if made := lists.Load() - before; made > 9 {
			t.Errorf("%d lists of Machines for 3 tens", made)
		}
	})
}

func TestInterrupted(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		says  string
	}{
		"before it began":       {0, "interrupted, no DELETE was sent"},
		"while a deletion ends": {2 * time.Second, "interrupted, a DELETE may have been accepted"},
		"while it is waited":    {65 * time.Second, "interrupted, a DELETE may have been accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, iaasmock.WithDeleteDuration(5*time.Minute))
				ctx, cancel := context.WithTimeout(t.Context(), row.after)
				defer cancel()
				plan := r.look(lost)
				r.delete(ctx, plan)
				expect(t, plan.Servers[0], unknown, row.says)
			})
		})
	}
}
