// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean_test

import (
	"context"
	"errors"
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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	deleteOperation = "DeleteServer"
	getOperation    = "GetServer"
	// aMoment is less than staysFor.
	aMoment = 10 * time.Second
)

// rig is the tests' rig, with what clean needs.
type rig struct{ *testrig.Rig }

// newCleanRig is in virtual time, without a network: time stands still while a goroutine
// waits for one.
func newCleanRig(t *testing.T, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(5 * time.Second), iaasmock.WithoutAuthentication(),
	}, options...)...)
	return &rig{testrig.NewOver(t, cloud, "http://iaas.invalid", &inMemory{Handler: conformance.Watch(t, cloud)})}
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

func (r *rig) orphan() string {
	return r.Server("orphan-1", testrig.Labels("orphan-1", "worker", testrig.OwnCluster))
}

// plan plans the deletion of the cluster's orphans.
func (r *rig) plan() *clean.Plan {
	r.T.Helper()
	r.MakeClusters()
	plan, err := clean.Make(r.T.Context(), r.Access, clean.Options{ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster})
	if err != nil {
		r.T.Fatal(err)
	}
	return plan
}

// clean deletes what is planned, one orphan as a rule, and returns what became of the last.
// What is reported gone must be gone.
func (r *rig) clean(ctx context.Context, plan *clean.Plan) (last clean.Deletion) {
	r.T.Helper()
	reports := 0
	plan.Delete(ctx, clean.TypedWithIDs, true, func(deletion clean.Deletion) {
		last = deletion
		reports++
		if _, there := r.Cloud.Server(deletion.Orphan.ID); there && deletion.Outcome == clean.Gone {
			r.T.Errorf("server %s is reported gone, and is there", deletion.Orphan.ID)
		}
	})
	if reports != len(plan.Orphans) || reports == 0 {
		r.T.Fatalf("%d reports of %d orphans", reports, len(plan.Orphans))
	}
	return last
}

// status is that of the server; "" if there is none.
func (r *rig) status(id string) string {
	server, _ := r.Cloud.Server(id)
	return server.Status
}

// failsFirst lets the first DELETE fail with this status, and something happen meanwhile.
func (r *rig) failsFirst(status int, meanwhile func()) {
	r.T.Helper()
	r.Cloud.Inject(iaasmock.Fault{Operation: deleteOperation, Count: 1, Status: status})
	wire, ok := r.Access.Transport.(*inMemory)
	if !ok {
		r.T.Fatalf("the transport is a %T", r.Access.Transport)
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
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: name}, Data: map[string][]byte{
				"projectId": []byte(at.project), "region": []byte(at.region), "userData": nil,
			}}
			class := testrig.Class(name, map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
			class.SecretRef.Name = name
			r.Add(secret, class)
			if _, err := r.TryServerAt(t.Context(), at.project, at.region, at.network, "orphan", testrig.Labels("orphan", name, testrig.OwnCluster)); err != nil {
				t.Fatal(err)
			}
		}
		plan := r.plan()
		if len(plan.Orphans) != len(places) {
			t.Fatalf("%d orphans, want %d", len(plan.Orphans), len(places))
		}
		r.clean(t.Context(), plan)
		if left := r.Cloud.Servers(); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

// The last look lies within the driver's request for an orphan's deletion, whose time is
// bounded: requests must not wait for one another's looks.
func TestCleanDeletesManyWhereReadsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCleanRig(t)
		for i := range 60 {
			name := fmt.Sprintf("orphan-%d", i)
			r.Server(name, testrig.Labels(name, "worker", testrig.OwnCluster))
		}
		r.Funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			<-time.After(2 * time.Second)
			return c.List(ctx, list, options...)
		}
		plan := r.plan()
		plan.Delete(t.Context(), clean.TypedWithIDs, true, func(deletion clean.Deletion) {
			if deletion.Outcome != clean.Gone {
				t.Error(deletion.Orphan.Name, deletion.Reason)
			}
		})
		if left := len(r.Cloud.Servers()); left > 0 {
			t.Errorf("%d servers are left", left)
		}
	})
}

func TestCleanLooksRightBeforeItDeletes(t *testing.T) {
	const left, requested = "left alone: Machine " + testrig.Namespace + "/orphan-1 names it", "; but its deletion may have been requested before"
	for name, row := range map[string]struct {
		sent   int
		reason string
		// prepare lets the Machine appear by add.
		prepare func(r *rig, id string, add func())
	}{
		"a Machine appears before the DELETE": {0, left, func(_ *rig, _ string, add func()) { add() }},
		"and the API does not find the server for a moment": {0, left, func(r *rig, id string, add func()) {
			add()
			r.Cloud.Inject(iaasmock.Fault{Operation: getOperation, Server: id, Status: http.StatusNotFound, Duration: aMoment})
		}},
		"a Machine appears before a repeated DELETE": {1, left + requested, func(r *rig, _ string, add func()) {
			r.failsFirst(http.StatusServiceUnavailable, add)
		}},
		"a Machine appears before the deletion is requested again": {1, left, func(r *rig, _ string, add func()) {
			r.failsFirst(http.StatusNotFound, add)
		}},
		"its label is another cluster's before a repeated DELETE": {1, "left alone: it has changed since it was shown: run this again" + requested, func(r *rig, id string, _ func()) {
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
				if result.Outcome == clean.Gone || result.Reason != row.reason || r.status(id) != "ACTIVE" {
					t.Errorf("the server is %s; %+v", r.status(id), result)
				}
				if sent := r.Cloud.CallCounts()[deleteOperation]; sent != row.sent {
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
		r.Funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			machines, isMachines := list.(*v1alpha1.MachineList)
			if !isMachines {
				return c.List(ctx, list, options...)
			}
			if looks++; looks == 3 { // two are the plan's; later it is not there any more
				machines.Items = []v1alpha1.Machine{*testrig.Machine("orphan-1", "worker", "")}
			}
			return nil
		}
		result := r.clean(t.Context(), r.plan())
		if result.Outcome == clean.Gone || !strings.HasPrefix(result.Reason, "left alone: Machine ") || r.status(id) != "ACTIVE" || looks != 3 {
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
				r.Cloud.Inject(row.fault)
				result := r.clean(t.Context(), plan) // which checks what is reported gone
				if (result.Outcome == clean.Gone) != row.gone || (result.Reason == "") != row.gone {
					t.Errorf("the server is %q; %+v", r.status(id), result)
				}
			})
		})
	}
}

func TestCleanInterrupted(t *testing.T) {
	for name, row := range map[string]struct {
		after   time.Duration
		outcome clean.Outcome
		reason  string
	}{
		"before it began":       {0, clean.NotDeleted, "not begun: too late"},
		"while a deletion ends": {2 * time.Second, clean.Unknown, "too late: its deletion may have been requested"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCleanRig(t)
				r.orphan()
				ctx, cancel := context.WithTimeoutCause(t.Context(), row.after, errors.New("too late"))
				defer cancel()
				if result := r.clean(ctx, r.plan()); result.Outcome != row.outcome || result.Reason != row.reason {
					t.Errorf("%+v", result)
				}
			})
		})
	}
}

func (r *rig) makeMachine(name string) {
	if err := r.Access.Control.Create(r.T.Context(), testrig.Machine(name, "worker", "")); err != nil {
		r.T.Error(err)
	}
}

func (r *rig) giveToAnotherCluster(id string) {
	_, err := r.API.API.UpdateServer(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id).
		UpdateServerPayload(iaas.UpdateServerPayload{Labels: map[string]any{testrig.ClusterKey: "another"}}).Execute()
	if err != nil {
		r.T.Error(err)
	}
}
