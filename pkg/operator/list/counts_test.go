// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestClusters(t *testing.T) {
	const own, other = testrig.ClusterKey + "=" + testrig.OwnCluster, testrig.ClusterKey + "=other"
	for name, row := range map[string]struct {
		given func(r *rig)
		// want is by the cluster's label.
		want map[string]string
	}{
		"no server": {func(*rig) {}, map[string]string{own: `"classes":1,"servers":0,"active":0,"machines":0,"ready":0,"orphans":0`}},
		"Machines elsewhere": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", "other"))
		}, map[string]string{
			own:   `"classes":1,"servers":0,"active":0,"machines":0,"ready":0,"orphans":0`,
			other: `"projectIds":["10000000-0000-4000-8000-000000000001"],"classes":0,"servers":1,"active":1`,
		}},
		"a Machine here names a server of another cluster": {func(r *rig) {
			r.Add(testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", "other"))))
		}, map[string]string{
			own:   `"classes":1,"servers":0,"active":0,"machines":1,"ready":0,"orphans":0`,
			other: `"projectIds":["10000000-0000-4000-8000-000000000001"],"classes":0,"servers":1,"active":1`,
		}},
		"a class in another namespace": {func(r *rig) {
			class := testrig.Class("there", map[string]any{"labels": map[string]any{testrig.ClusterKey: "other"}})
			class.Namespace = "other"
			r.Add(class)
			r.Server("m1", testrig.Labels("m1", "there", "other"))
		}, map[string]string{
			own:   `"classes":1,"servers":0,"active":0,"machines":0,"ready":0,"orphans":0`,
			other: `"projectIds":["10000000-0000-4000-8000-000000000001"],"classes":1,"servers":1,"active":1,"machines":0,"ready":0,"orphans":1`,
		}},
		"a server without a label, which may be an orphan": {func(r *rig) {
			r.Server("m1", testrig.Labels("m1", "worker", ""))
		}, map[string]string{
			own: `"classes":1,"servers":0,"active":0,"machines":0,"ready":0,"orphans":0`,
			"":  `"projectIds":["10000000-0000-4000-8000-000000000001"],"classes":0,"servers":1,"active":1`,
		}},
		"a class without a label": {func(r *rig) {
			r.Add(testrig.Class("plain", nil), testrig.Machine("m1", "plain", r.Server("m1", testrig.Labels("m1", "plain", ""))))
		}, map[string]string{
			own: `"classes":1,"servers":0,"active":0,"machines":0,"ready":0,"orphans":0`,
			"":  `"projectIds":["10000000-0000-4000-8000-000000000001"],"classes":1,"servers":1,"active":1,"machines":1,"ready":0,"orphans":0`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.given(r)
			found := r.look(list.Query{})
			if len(found.Clusters) != len(row.want) {
				t.Errorf("got %d clusters, want %d", len(found.Clusters), len(row.want))
			}
			for _, cluster := range found.Clusters {
				got, err := json.Marshal(cluster)
				must(r, err)
				if want := fmt.Sprintf(`{"cluster":%q,%s}`, cluster.Cluster, row.want[cluster.Cluster]); string(got) != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
		})
	}
}

// A server that may be an orphan is not counted as none.
func TestOrphansAreUnknownWhileOneMayBe(t *testing.T) {
	r := newRig(t)
	r.Server("m1", testrig.Labels("m1", "worker", ""))
	for _, orphans := range []bool{false, true} {
		found := r.look(list.Query{Orphans: orphans})
		if found.Totals.Orphans != nil || *found.Totals.Servers != 1 {
			t.Errorf("got %+v", found.Totals)
		}
		want := ""
		if orphans {
			want = "[orphans unknown: of 1 server it cannot be told: it has no cluster label: another cluster may have a class of this name]"
		}
		if got := strings.Trim(fmt.Sprint(found.Unread), "[]"); got != strings.Trim(want, "[]") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestClusterThatNothingCarries(t *testing.T) {
	for name, row := range map[string]struct {
		cluster string
		given   func(r *rig)
		known   bool
	}{
		"a class":                      {testrig.OwnCluster, func(*rig) {}, true},
		"nothing":                      {"typo", func(*rig) {}, false},
		"a server":                     {"typo", func(r *rig) { r.Server("m1", testrig.Labels("m1", "worker", "typo")) }, true},
		"nothing, classes not read":    {"typo", func(r *rig) { r.forbid(&v1alpha1.MachineClassList{}, true) }, false},
		"a class, which is not read":   {testrig.OwnCluster, func(r *rig) { r.forbid(&v1alpha1.MachineClassList{}, true) }, false},
		"a class, servers are refused": {"typo", func(r *rig) { r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 403}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Access.SecretName = "credentials"
			row.given(r)
			found := r.look(list.Query{ClusterKey: testrig.ClusterKey, ClusterValue: row.cluster})
			if found.Knows(list.PartCluster) != row.known {
				t.Errorf("got %v", found.Unread)
			}
		})
	}
}

func TestAllNamespaces(t *testing.T) {
	other := func(r *rig) {
		class := testrig.Class("there", map[string]any{"region": iaasmock.SecondRegion})
		foreign := testrig.Class("foreign", nil)
		foreign.Provider, foreign.SecretRef.Name = "openstack", "nope"
		machine := testrig.InPhase(testrig.Machine("m2", "there", ""), "")
		class.Namespace, foreign.Namespace, machine.Namespace = "other", "other", "other"
		r.Add(class, foreign, machine, testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))))
	}
	for name, row := range map[string]struct {
		given func(r *rig)
		all   bool
		want  string
		lists int
		known bool
	}{
		"one":                {other, false, "shoot--demo/m1", 1, true},
		"all":                {other, true, "other/m2 shoot--demo/m1", 2, true},
		"all, with a Secret": {func(r *rig) { other(r); r.Access.SecretName = "credentials" }, true, "other/m2 shoot--demo/m1", 1, true},
		"all, of which one may be read": {func(r *rig) {
			other(r)
			r.forbid(&v1alpha1.MachineList{}, false)
		}, true, "shoot--demo/m1", 2, false},
		"all, with the classes of one": {func(r *rig) {
			other(r)
			r.forbid(&v1alpha1.MachineClassList{}, false)
		}, true, "other/m2 shoot--demo/m1", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.given(r)
			r.Cloud.ResetCalls()
			found := r.look(list.Query{AllNamespaces: row.all})
			var names []string
			for _, machine := range found.Machines {
				names = append(names, machine.Namespace+"/"+machine.Name)
			}
			if got := strings.Join(names, " "); got != row.want || found.Knows(list.PartServers, list.PartOtherMachines) != row.known {
				t.Errorf("got %s, %v; want %s", got, found.Unread, row.want)
			}
			if lists := r.Cloud.CallCounts()["ListServers"]; lists != row.lists {
				t.Errorf("got %d lists of servers, want %d", lists, row.lists)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	const otherType = "c2i.4"
	for name, row := range map[string]struct {
		class map[string]any
		// imageID is what the API shows.
		imageID string
		want    string
	}{
		"the same":                   {nil, iaasmock.DefaultImageID, "[]"},
		"another image":              {map[string]any{"imageId": iaasmock.SecondImageID}, iaasmock.DefaultImageID, "[imageId " + iaasmock.DefaultImageID + ", not " + iaasmock.SecondImageID + "]"},
		"an image that is not shown": {nil, "", "[imageId unknown]"},
		"another type":               {map[string]any{"machineType": otherType}, iaasmock.DefaultImageID, "[machineType " + iaasmock.DefaultMachineType + ", not " + otherType + "]"},
		"a class that cannot be decoded": {map[string]any{"machineType": 1, "imageId": 2}, iaasmock.DefaultImageID,
			"[machineType unknown imageId unknown]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Add(testrig.Class("drifting", row.class))
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 200, Body: fmt.Sprintf(
				`{"items":[{"id":%q,"name":"m1","status":"ACTIVE","machineType":%q,"imageId":%q,"labels":{"kubernetes.io/machine":"m1","kubernetes.io/machineclass":"drifting"}}]}`,
				elsewhere, iaasmock.DefaultMachineType, row.imageID)})
			r.Add(testrig.Machine("m1", "drifting", elsewhere))
			if got := fmt.Sprint(r.look(list.Query{}).Machines[0].Drift); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestPreserved(t *testing.T) {
	const key, applied = "node.machine.sapcloud.io/preserve", "node.machine.sapcloud.io/last-applied-node-preserve-value"
	for name, row := range map[string]struct {
		machine, node map[string]string
		until         string
		want          string
	}{
		"no annotation":                {nil, nil, "", ""},
		"false":                        {map[string]string{key: "false"}, nil, "", ""},
		"a value that means nothing":   {map[string]string{key: "yes"}, nil, "", ""},
		"now":                          {map[string]string{key: "now"}, nil, "2026-05-04T03:02:01Z", "preserved until 2026-05-04T03:02:01Z"},
		"now, not seen by the manager": {map[string]string{key: "now"}, nil, "", "preserved soon"},
		"when it fails":                {map[string]string{key: "when-failed"}, nil, "", "preserved if it fails"},
		"by the Node":                  {nil, map[string]string{key: "when-failed"}, "", "preserved if it fails"},
		"the Node's comes first":       {map[string]string{key: "when-failed"}, map[string]string{key: "false"}, "", ""},
		"no more by the Node":          {map[string]string{key: "now", applied: "now"}, map[string]string{}, "", ""},
		"by a Node that is not there":  {map[string]string{applied: "when-failed"}, nil, "", "preserved if it fails"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))
			machine := testrig.Machine("m1", "worker", id)
			machine.Annotations = row.machine
			if row.until != "" {
				until, err := time.Parse(time.RFC3339, row.until)
				must(r, err)
				machine.Status.CurrentStatus.PreserveExpiryTime = new(metav1.NewTime(until))
			}
			r.Add(machine)
			if row.node != nil {
				node := testrig.Node("m1", id, corev1.ConditionTrue)
				node.Annotations = row.node
				r.Add(node)
			}
			if got := strings.Join(words(r.look(list.Query{}).Machines[0].Notes), ","); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
