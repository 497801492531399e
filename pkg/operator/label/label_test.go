// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package label_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/label"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// complete are the labels of worker's Machine m1.
var complete = testrig.Labels("m1", "worker", testrig.OwnCluster)

// with returns labels with another one.
func with(labels map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
	maps.Copy(all, labels)
	all[key] = value
	return all
}

func plan(t *testing.T, r *testrig.Rig) *label.Plan {
	t.Helper()
	r.MakeClusters()
	made, err := label.Make(t.Context(), r.Access)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// apply returns what was reported of each server.
func apply(t *testing.T, made *label.Plan) []label.Server {
	t.Helper()
	var all []label.Server
	made.Apply(t.Context(), func(server label.Server) { all = append(all, server) })
	return all
}

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

type roundTripper func(*http.Request) (*http.Response, error)

func TestWhichServersAreLabelled(t *testing.T) {
	const ours = "stackit://" + iaasmock.DefaultProjectID + "/ID"
	for name, row := range map[string]struct {
		labels     map[string]string
		server     string // its name; "" means m1
		providerID string
		change     func(r *testrig.Rig, machine *v1alpha1.Machine, id string)
		want       label.Outcome
		says       string
	}{
		"no labels":                    {providerID: ours, want: label.Labelled},
		"labels of OpenStack's":        {providerID: ours, labels: map[string]string{"kubernetes.io-role-node": "1"}, want: label.Labelled},
		"no cluster label":             {providerID: ours, labels: testrig.Labels("m1", "worker", ""), want: label.Labelled},
		"all labels":                   {providerID: ours, labels: complete, want: label.Complete},
		"an ID of OpenStack's":         {providerID: "openstack:///RegionOne/ID", want: label.Refused, says: "would delete the server as an orphan; first write stackit://"},
		"an ID of one part":            {providerID: "stackit://ID", want: label.Refused, says: "would delete the server as an orphan"},
		"that, and both labels":        {providerID: "openstack:///ID", labels: complete, want: label.Refused, says: "has both labels already: scale the manager"},
		"another project's ID":         {providerID: "stackit://" + testrig.OtherProject + "/ID", want: label.Refused, says: "but the Secret's project is"},
		"no ID that is understood":     {providerID: "aws:///x", want: label.Refused, says: "is not understood"},
		"no ID, marked":                {change: marked, want: label.Refused, says: "no server is labelled by its name alone"},
		"no ID":                        {},
		"its Machine is going":         {providerID: ours, change: going},
		"another Machine's label":      {providerID: ours, labels: with(nil, "kubernetes.io/machine", "m2"), want: label.Refused, says: `its label kubernetes.io/machine is "m2"`},
		"another class's label":        {providerID: ours, labels: with(nil, "kubernetes.io/machineclass", "old"), want: label.Refused, says: `machineclass is "old"`},
		"another cluster's label":      {providerID: ours, labels: with(nil, testrig.ClusterKey, "x"), want: label.Refused, says: `cluster is "x"`},
		"another key's cluster":        {providerID: ours, labels: with(nil, "example.org/cluster", "x"), want: label.Refused, says: "names another cluster"},
		"another cluster's tag":        {providerID: ours, labels: with(nil, "kubernetes.io-cluster-x", "1"), want: label.Refused, says: "names another cluster"},
		"another name":                 {providerID: ours, server: "m2", want: label.Refused, says: `its name "m2"`},
		"no such server":               {providerID: "stackit://" + iaasmock.DefaultProjectID + "/00000000-0000-4000-8000-000000000009", want: label.Refused, says: "no such server"},
		"deleted already":              {providerID: ours, change: status("DELETING"), want: label.Refused, says: "it is DELETING"},
		"named by two Machines":        {providerID: ours, change: second, want: label.Refused, says: "Machine other/m9 names it, too"},
		"its class is gone":            {providerID: ours, change: class("gone"), want: label.Refused, says: "MachineClass gone does not exist"},
		"its class has a broken label": {providerID: ours, change: class("broken"), want: label.Refused, says: "cluster label of MachineClass broken cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			server := "m1"
			if row.server != "" {
				server = row.server
			}
			id := r.Server(server, row.labels)
			machine := testrig.Machine("m1", "worker", "")
			machine.Spec.ProviderID = strings.ReplaceAll(row.providerID, "ID", id)
			if row.change != nil {
				row.change(r, machine, id)
			}
			r.Add(machine, testrig.Class("broken", map[string]any{"labels": map[string]any{testrig.ClusterKey: ""}}))
			before := labelsOf(t, r, id)
			made := plan(t, r)
			if after := labelsOf(t, r, id); !maps.Equal(before, after) {
				t.Fatalf("a plan changed the labels to %v", after)
			}
			apply(t, made)
			if row.want == "" && len(made.Servers) == 0 {
				return
			}
			if len(made.Servers) != 1 || made.Servers[0].Outcome != row.want || !strings.Contains(made.Servers[0].Reason, row.says) || (row.says == "") != (made.Servers[0].Reason == "") {
				t.Fatalf("got %+v, want %s because %q", made.Servers, row.want, row.says)
			}
			want := maps.Clone(before)
			if row.want == label.Labelled {
				maps.Copy(want, complete)
			}
			if after := labelsOf(t, r, id); !maps.Equal(after, want) {
				t.Errorf("the labels are %v, want %v", after, want)
			}
		})
	}
}

func labelsOf(t *testing.T, r *testrig.Rig, id string) map[string]string {
	t.Helper()
	server, ok := r.Cloud.Server(id)
	if !ok {
		t.Fatalf("server %s is gone", id)
	}
	return server.Labels
}

func marked(_ *testrig.Rig, machine *v1alpha1.Machine, _ string) {
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, "stackit.cloud/migrated-machine", "true")
}

func going(_ *testrig.Rig, machine *v1alpha1.Machine, _ string) {
	now := metav1.Now()
	machine.DeletionTimestamp, machine.Finalizers = &now, []string{"machine.sapcloud.io/machine-controller-manager"}
}

func status(status string) func(*testrig.Rig, *v1alpha1.Machine, string) {
	return func(r *testrig.Rig, _ *v1alpha1.Machine, id string) {
		if err := r.Cloud.SetServerStatus(id, status, ""); err != nil {
			r.T.Fatal(err)
		}
	}
}

func second(r *testrig.Rig, _ *v1alpha1.Machine, id string) {
	other := testrig.Machine("m9", "worker", id)
	other.Namespace = "other"
	r.Add(other)
}

func class(name string) func(*testrig.Rig, *v1alpha1.Machine, string) {
	return func(_ *testrig.Rig, machine *v1alpha1.Machine, _ string) { machine.Spec.Class.Name = name }
}

// Whether a PATCH merges labels or replaces them is not known: what it sends is right for both,
// but for labels that only STACKIT may set.
func TestWhatIsSent(t *testing.T) {
	for name, row := range map[string]struct {
		reserved bool
		answer   func(sent map[string]any)
		want     label.Outcome
		says     string
	}{
		"as sent":                   {want: label.Labelled},
		"a label is lost":           {answer: func(sent map[string]any) { delete(sent, "team") }, want: label.Wrong, says: "team is missing"},
		"a label is changed":        {answer: func(sent map[string]any) { sent["team"] = "b" }, want: label.Wrong, says: `team is "b", not "a"`},
		"more labels":               {answer: func(sent map[string]any) { sent["stackit_project_id"] = "x" }, want: label.Labelled},
		"a reserved label is lost":  {reserved: true, want: label.Wrong, says: "stackit-x is missing"},
		"a reserved label is there": {reserved: true, answer: func(sent map[string]any) { sent["stackit-x"] = "1" }, want: label.Labelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			first, second := r.Server("m1", with(nil, "team", "a")), r.Server("m2", nil)
			r.Add(testrig.Machine("m1", "worker", first), testrig.Machine("m2", "worker", second))
			r.Access.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
				return answering(t, request, first, row.reserved, row.answer)
			})
			r.Access.Sessions = r.Access.NewSessions(r.Access.Transport)
			reported := apply(t, plan(t, r))
			if len(reported) != 2 || reported[0].Outcome != row.want || !strings.Contains(reported[0].Reason, row.says) {
				t.Fatalf("got %+v, want %s because %q", reported, row.want, row.says)
			}
			if wrong := row.want == label.Wrong; wrong != (len(labelsOf(t, r, second)) == 0) || wrong != (reported[1].Outcome == label.Refused) {
				t.Errorf("the second server: %+v, its labels are %v", reported[1], labelsOf(t, r, second))
			}
		})
	}
}

// answering lets the mock answer, and shows a server with the label that only STACKIT sets, and
// after a PATCH the labels as answer has them.
func answering(t *testing.T, request *http.Request, id string, reserved bool, answer func(map[string]any)) (*http.Response, error) {
	if request.Method == http.MethodPatch {
		sent, _ := io.ReadAll(request.Body)
		request.Body = io.NopCloser(strings.NewReader(string(sent)))
		if strings.Contains(request.URL.Path, id) && (!strings.Contains(string(sent), `"team":"a"`) || strings.Contains(string(sent), "stackit-")) {
			t.Errorf("sent %s, want the label team, and none of STACKIT's", sent)
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || !strings.HasSuffix(request.URL.Path, "/servers/"+id) {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	var server map[string]any
	if err := json.NewDecoder(response.Body).Decode(&server); err != nil {
		return nil, err
	}
	labels, _ := server["labels"].(map[string]any)
	if reserved && request.Method == http.MethodGet {
		labels["stackit-x"] = "1"
	}
	if answer != nil && request.Method == http.MethodPatch {
		answer(labels)
	}
	text, err := json.Marshal(server)
	response.Body, response.ContentLength = io.NopCloser(strings.NewReader(string(text))), int64(len(text))
	return response, err
}

func TestWhatFails(t *testing.T) {
	for name, row := range map[string]struct {
		fault fault.Fault
		want  label.Outcome
	}{
		"refused":                 {fault.Fault{Operation: "UpdateServer", Status: http.StatusForbidden}, label.Refused},
		"no answer":               {fault.Fault{Operation: "UpdateServer", Status: http.StatusInternalServerError}, label.Unknown},
		"the server is not shown": {fault.Fault{Operation: "GetServer", Status: http.StatusInternalServerError}, label.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			id := r.Server("m1", nil)
			r.Add(testrig.Machine("m1", "worker", id))
			r.Cloud.Inject(row.fault)
			if reported := apply(t, plan(t, r)); len(reported) != 1 || reported[0].Outcome != row.want {
				t.Errorf("got %+v, want %s", reported, row.want)
			}
		})
	}
}

// What changed between the plan and its application is not labelled.
func TestWhatChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(r *testrig.Rig, machine *v1alpha1.Machine, id string){
		"the ProviderID": func(r *testrig.Rig, machine *v1alpha1.Machine, id string) {
			machine.Spec.ProviderID = "openstack:///RegionOne/" + id
			if err := r.Access.Control.Update(r.T.Context(), machine); err != nil {
				r.T.Fatal(err)
			}
		},
		"the server": status("DELETING"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			id := r.Server("m1", nil)
			r.Add(testrig.Machine("m1", "worker", id))
			made := plan(t, r)
			var machine v1alpha1.Machine
			if err := r.Access.Control.Get(t.Context(), client.ObjectKey{Namespace: testrig.Namespace, Name: "m1"}, &machine); err != nil {
				t.Fatal(err)
			}
			change(r, &machine, id)
			if reported := apply(t, made); reported[0].Outcome != label.Refused || len(labelsOf(t, r, id)) > 0 {
				t.Errorf("got %+v, want it refused", reported)
			}
		})
	}
}
