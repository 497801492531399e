// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	deleteOperation = "DeleteServer"
	getOperation    = "GetServer"
	// aMoment is less than staysFor.
	aMoment = 10 * time.Second
)

// newCleanRig is in virtual time, without a network: time stands still while a goroutine
// waits for one.
func newCleanRig(t *testing.T, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(5 * time.Second), iaasmock.WithoutAuthentication(),
	}, options...)...)
	return newRigOver(t, cloud, "http://iaas.invalid", &inMemory{Handler: conformance.Watch(t, cloud)})
}

// inMemory lets the handler answer, which sees the request's body as a server does.
type inMemory struct {
	http.Handler
	// onDelete is called when the next DELETE is sent; nil if nobody wants to know.
	onDelete func()
}

func (m *inMemory) RoundTrip(request *http.Request) (*http.Response, error) {
	if do := m.onDelete; do != nil && request.Method == http.MethodDelete {
		m.onDelete = nil
		do()
	}
	answer, received := httptest.NewRecorder(), request.Clone(request.Context())
	if received.Body == nil {
		received.Body = http.NoBody
	}
	m.ServeHTTP(answer, received)
	return answer.Result(), nil
}

func (r *rig) orphan() string { return r.server("orphan-1", labels("orphan-1", "worker", ownCluster)) }

// plan plans the deletion of the cluster's orphans.
func (r *rig) plan() *operator.Cleanup {
	r.t.Helper()
	r.makeClusters()
	plan, err := r.op.PlanCleanup(r.t.Context(), operator.CleanOptions{ClusterKey: clusterKey, ClusterValue: ownCluster})
	if err != nil {
		r.t.Fatal(err)
	}
	return plan
}

// clean deletes what is planned, one orphan as a rule, and returns what became of the last.
// What is reported gone must be gone.
func (r *rig) clean(ctx context.Context, plan *operator.Cleanup) (last operator.Deletion) {
	r.t.Helper()
	reports := 0
	plan.Delete(ctx, func(deletion operator.Deletion) {
		last = deletion
		reports++
		if _, there := r.cloud.Server(deletion.Orphan.ID); there && deletion.Gone {
			r.t.Errorf("server %s is reported gone, and is there", deletion.Orphan.ID)
		}
	})
	if reports != len(plan.Orphans) || reports == 0 {
		r.t.Fatalf("%d reports of %d orphans", reports, len(plan.Orphans))
	}
	return last
}

// status is that of the server; "" if there is none.
func (r *rig) status(id string) string {
	server, _ := r.cloud.Server(id)
	return server.Status
}

// failsFirst lets the first DELETE fail with this status, and something happen meanwhile.
func (r *rig) failsFirst(status int, meanwhile func()) {
	r.t.Helper()
	r.cloud.Inject(iaasmock.Fault{Operation: deleteOperation, Count: 1, Status: status})
	wire, ok := r.op.Transport.(*inMemory)
	if !ok {
		r.t.Fatalf("the transport is a %T", r.op.Transport)
	}
	wire.onDelete = meanwhile
}

func TestCleanDeletesInEachProjectAndRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// For longer than a server in another place would take to be proved gone.
		r := newCleanRig(t, iaasmock.WithDeleteDuration(time.Minute))
		places := map[string]struct{ project, region, network string }{
			"first":  {iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultNetworkID},
			"second": {iaasmock.DefaultProjectID, iaasmock.SecondRegion, iaasmock.SecondRegionNetworkID},
			"third":  {iaasmock.SecondProjectID, iaasmock.DefaultRegion, iaasmock.SecondProjectNetworkID},
		}
		for name, at := range places {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{
				"projectId": []byte(at.project), "region": []byte(at.region), "userData": nil,
			}}
			class := class(name, map[string]any{"labels": map[string]any{clusterKey: ownCluster}})
			class.SecretRef.Name = name
			r.add(secret, class)
			if _, err := r.tryServerAt(t.Context(), at.project, at.region, at.network, "orphan", labels("orphan", name, ownCluster)); err != nil {
				t.Fatal(err)
			}
		}
		plan := r.plan()
		if len(plan.Orphans) != len(places) {
			t.Fatalf("%d orphans, want %d", len(plan.Orphans), len(places))
		}
		r.clean(t.Context(), plan)
		if left := r.cloud.Servers(); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

// The driver's request for an orphan's deletion takes 5 s at most, and the last look lies
// within it.
func TestCleanDeletesManyWhereReadsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCleanRig(t)
		for i := range 60 {
			name := fmt.Sprintf("orphan-%d", i)
			r.server(name, labels(name, "worker", ownCluster))
		}
		r.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			<-time.After(2 * time.Second)
			return c.List(ctx, list, options...)
		}
		plan := r.plan()
		plan.Delete(t.Context(), func(deletion operator.Deletion) {
			if !deletion.Gone {
				t.Error(deletion.Orphan.Name, deletion.Reason)
			}
		})
		if left := len(r.cloud.Servers()); left > 0 {
			t.Errorf("%d servers are left", left)
		}
	})
}

func TestCleanLooksRightBeforeItDeletes(t *testing.T) {
	const left, requested = "left alone: Machine " + namespace + "/orphan-1 names it", "; but its deletion may have been requested before"
	for name, row := range map[string]struct {
		sent   int
		reason string
		// prepare lets the Machine appear by add.
		prepare func(r *rig, id string, add func())
	}{
		"a Machine appears before the DELETE": {0, left, func(_ *rig, _ string, add func()) { add() }},
		"and the API does not find the server for a moment": {0, left, func(r *rig, id string, add func()) {
			add()
			r.cloud.Inject(iaasmock.Fault{Operation: getOperation, Server: id, Status: http.StatusNotFound, Duration: aMoment})
		}},
		"a Machine appears before a repeated DELETE": {1, left + requested, func(r *rig, _ string, add func()) {
			r.failsFirst(http.StatusServiceUnavailable, add)
		}},
		"a Machine appears before the deletion is requested again": {1, left + requested, func(r *rig, _ string, add func()) {
			r.failsFirst(http.StatusNotFound, add)
		}},
		"its label is another cluster's before a repeated DELETE": {1, "left alone: its label is not " + clusterKey + "=" + ownCluster + " any more" + requested, func(r *rig, id string, _ func()) {
			r.failsFirst(http.StatusServiceUnavailable, func() { r.giveToAnotherCluster(id) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCleanRig(t)
				id := r.orphan()
				plan := r.plan()
				row.prepare(r, id, func() { r.makeMachine("orphan-1") })
				result := r.clean(t.Context(), plan)
				if result.Gone || result.Reason != row.reason || r.status(id) != "ACTIVE" {
					t.Errorf("the server is %s; %+v", r.status(id), result)
				}
				if sent := r.cloud.CallCounts()[deleteOperation]; sent != row.sent {
					t.Errorf("%d DELETEs, want %d", sent, row.sent)
				}
			})
		})
	}
}

func TestCleanRepeatsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCleanRig(t)
		id := r.orphan()
		looks := 0
		r.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			machines, isMachines := list.(*v1alpha1.MachineList)
			if !isMachines {
				return c.List(ctx, list, options...)
			}
			if looks++; looks == 3 { // two are the plan's; later it is not there any more
				machines.Items = []v1alpha1.Machine{*machine("orphan-1", "worker", "")}
			}
			return nil
		}
		result := r.clean(t.Context(), r.plan())
		if result.Gone || !strings.HasPrefix(result.Reason, "left alone: Machine ") || r.status(id) != "ACTIVE" || looks != 3 {
			t.Errorf("the server is %s after %d looks; %+v", r.status(id), looks, result)
		}
	})
}

func TestCleanReportsGoneOnlyWhatIsGone(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		gone  bool
	}{
		"a DELETE is answered 404 by chance":        {iaasmock.Fault{Operation: deleteOperation, Status: http.StatusNotFound, Count: 1}, true},
		"reads are answered 404 for a moment":       {iaasmock.Fault{Operation: getOperation, Status: http.StatusNotFound, Duration: aMoment}, true},
		"a DELETE is accepted, and nothing happens": {iaasmock.Fault{Operation: deleteOperation, Status: http.StatusAccepted, Count: 1, Body: "{}"}, true},
		"every DELETE is answered 404":              {iaasmock.Fault{Operation: deleteOperation, Status: http.StatusNotFound}, false},
		"every DELETE ends in ERROR":                {iaasmock.Fault{Operation: deleteOperation, FinalStatus: "ERROR"}, false},
		"a deletion hangs":                          {iaasmock.Fault{Operation: deleteOperation, NeverGone: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCleanRig(t)
				id := r.orphan()
				plan := r.plan()
				r.cloud.Inject(row.fault)
				result := r.clean(t.Context(), plan) // which checks what is reported gone
				if result.Gone != row.gone || (result.Reason == "") != row.gone {
					t.Errorf("the server is %q; %+v", r.status(id), result)
				}
			})
		})
	}
}

func TestCleanInterrupted(t *testing.T) {
	for name, row := range map[string]struct {
		after  time.Duration
		reason string
	}{
		"before it began":       {0, "not begun: it was interrupted"},
		"while a deletion ends": {2 * time.Second, "interrupted: its deletion may have been requested"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCleanRig(t)
				r.orphan()
				ctx, cancel := context.WithTimeout(t.Context(), row.after)
				defer cancel()
				if result := r.clean(ctx, r.plan()); result.Gone || result.Reason != row.reason {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}

func (r *rig) makeMachine(name string) {
	if err := r.op.Control.Create(r.t.Context(), machine(name, "worker", "")); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) giveToAnotherCluster(id string) {
	_, err := r.api.API.UpdateServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id).
		UpdateServerPayload(iaas.UpdateServerPayload{Labels: map[string]any{clusterKey: "another"}}).Execute()
	if err != nil {
		r.t.Error(err)
	}
}
