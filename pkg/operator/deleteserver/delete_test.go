// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver_test

import (
	"context"
	"fmt"
	"net/http"
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

// Right before each DELETE, repeated ones too, the server, the Machines and the Nodes are looked at.
func TestLooksRightBeforeEachDELETE(t *testing.T) {
	const (
		names = "Machine shoot--demo/lost-1 names it"
		stays = "a DELETE may have been accepted, and no other was sent: "
	)
	relabel := func(r *rig) { r.label(testrig.ClusterKey, "x") }
	rename := func(r *rig) { r.update(iaas.UpdateServerPayload{Name: new("x")}) }
	tag := func(r *rig) { r.metadata("a", "b") }
	hide := func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: getOperation, Status: 502}) }
	isUnread := func(r *rig) { r.unlisted = &v1alpha1.MachineList{} }
	// The second read of the server is that of the look: the first is the driver's.
	hideFromLook := func(r *rig) {
		reads := 0
		second := func(*http.Request) bool { reads++; return reads == 2 }
		r.Cloud.Inject(iaasmock.Fault{Operation: getOperation, Status: 404, Match: second})
	}
	failing := func(status int) *iaasmock.Fault {
		return &iaasmock.Fault{Operation: deleteOperation, Count: 1, Status: status, Delay: 6 * time.Second}
	}
	isLost := failing(502)
	isLost.Executed = true
	for name, row := range map[string]struct {
		change func(*rig)
		// first is what befalls the first DELETE, while the change is made; with nil it is made before.
		first   *iaasmock.Fault
		outcome deleteserver.Outcome
		says    string
		sent    int
	}{
		"a Machine appears":           {(*rig).appear, nil, refused, names, 0},
		"a Ready Node appears":        {(*rig).join, nil, refused, "and Ready", 0},
		"its cluster's label changes": {relabel, nil, refused, "its label kubernetes.io/cluster is", 0},
		"its name changes":            {rename, nil, refused, "it has changed", 0},
		"its metadata changes":        {tag, nil, refused, "it has changed", 0},
		"it cannot be read":           {hide, nil, refused, "it could not be read once more", 0},
		"Machines cannot be read":     {isUnread, nil, refused, "only who can read the Machines of all namespaces", 0},
		"a look is answered 404":      {hideFromLook, nil, gone, "", 1},
		"it is not shown for a moment, and a Machine appears": {func(r *rig) {
			r.appear()
			r.Cloud.Inject(iaasmock.Fault{Operation: getOperation, Status: 404, Duration: 10 * time.Second})
		}, nil, refused, names, 0},
		"somebody deletes it":              {(*rig).deleteBySomebody, nil, gone, "", 0},
		"404, and a Machine appears":       {(*rig).appear, failing(404), stillThere, stays + names, 1},
		"503, and a Machine appears":       {(*rig).appear, failing(503), stillThere, stays + names, 1},
		"503, and its label changes":       {relabel, failing(503), stillThere, stays + "it has changed", 1},
		"a lost answer, a Machine appears": {(*rig).appear, isLost, gone, "", 1},
		"it does nothing, a Node appears":  {(*rig).join, failing(204), stillThere, "and Ready", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				plan := r.look(lost)
				<-time.After(6 * time.Second) // Machines and Nodes are read again
				if row.first == nil {
					row.change(r)
				} else {
					r.Cloud.Inject(*row.first)
				}
				sent := 0
				r.wire.onDelete = func() {
					if sent++; sent == 1 && row.first != nil {
						row.change(r)
					}
				}
				r.delete(t.Context(), plan)
				if expect(t, plan.Servers[0], row.outcome, row.says); sent != row.sent {
					t.Errorf("%d DELETEs, want %d", sent, row.sent)
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
	const nothingProved = "a read does not show it, which proves nothing"
	for name, row := range map[string]struct {
		faults  []iaasmock.Fault
		outcome deleteserver.Outcome
		says    string
	}{
		"a DELETE is answered 404 by chance":  {deletes(iaasmock.Fault{Status: 404, Count: 1}), gone, ""},
		"a DELETE does nothing":               {deletes(iaasmock.Fault{Status: 204, Count: 1}), gone, ""},
		"the answer to a DELETE is lost":      {deletes(iaasmock.Fault{Status: 504, Executed: true, Count: 1}), gone, ""},
		"DELETEs fail for a moment":           {deletes(iaasmock.Fault{Status: 503, Count: 2}), gone, ""},
		"no DELETE does anything":             {deletes(iaasmock.Fault{Status: 204}), stillThere, "it is ACTIVE: "},
		"every DELETE is answered 404":        {deletes(iaasmock.Fault{Status: 404}), stillThere, "it is ACTIVE: "},
		"every DELETE is answered 503":        {deletes(iaasmock.Fault{Status: 503}), stillThere, "it is ACTIVE: "},
		"every DELETE is answered 403":        {deletes(iaasmock.Fault{Status: 403}), stillThere, "ACTIVE: NoPermission"},
		"a DELETE is answered 403, and done":  {deletes(iaasmock.Fault{Status: 403, Executed: true}), gone, ""},
		"every DELETE ends in ERROR":          {deletes(iaasmock.Fault{FinalStatus: "ERROR"}), stillThere, "it is ERROR: "},
		"it hangs in DELETING":                {[]iaasmock.Fault{hangs}, stillThere, "it is DELETING: "},
		"it hangs, and then is hidden":        {[]iaasmock.Fault{hangs, hidden}, unknown, nothingProved},
		"reads are answered 404 for a moment": {[]iaasmock.Fault{absent}, gone, ""},
		"the project is empty for a moment":   {[]iaasmock.Fault{empty(time.Second, 10*time.Second)}, gone, ""},
		"the project is empty for a minute":   {[]iaasmock.Fault{empty(0, time.Minute)}, unknown, "no DELETE was sent"},
		"it hangs, and the project is empty for a moment": {
			[]iaasmock.Fault{hangs, empty(19*time.Second, 11*time.Second)}, stillThere, "it is DELETING: "},
		"it hangs, and the project is empty later": {
			[]iaasmock.Fault{hangs, empty(90*time.Second, 11*time.Second)}, stillThere, "it is DELETING: "},
		"lists are empty": {lists(iaasmock.Fault{EmptyList: true}), gone, ""},
		"lists are old":   {lists(iaasmock.Fault{Stale: time.Minute}), gone, ""},
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

func TestServersOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first := r.ids[lost]
		r.make(lost)
		r.options.IDs = []string{first}
		<-time.After(2 * hour)
		plan := r.look(lost)
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
		<-time.After(2 * hour)
		plan := r.look(lost, "abroad", "worker-0")
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
		"before it began":       {0, "interrupted, no DELETE was accepted"},
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
