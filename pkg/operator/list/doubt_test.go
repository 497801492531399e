// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var emptyList = iaasmock.Fault{Operation: "ListServers", EmptyList: true}

// A list that lacks servers is no reason to delete their Machines.
func TestAListAloneDoesNotProveAServerGone(t *testing.T) {
	cluster := list.Query{ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster}
	for name, row := range map[string]struct {
		query list.Query
		given func(r *rig, first, second string)
		want  notes
		known bool
		reads int
	}{
		"an empty list": {list.Query{}, func(r *rig, _, _ string) {
			r.Cloud.Inject(emptyList)
		}, notes{"machine m1": {"unknown"}, "machine m2": {"unknown"}}, false, 1},
		"empty lists of a cluster and of the project": {cluster, func(r *rig, _, _ string) {
			r.Cloud.Inject(emptyList)
		}, notes{"machine m1": {"unknown"}, "machine m2": {"unknown"}}, false, 1},
		"a list without one of them": {list.Query{}, func(r *rig, _, second string) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: fmt.Sprintf(
				`{"items":[{"id":%q,"name":"m2","machineType":"c2i.2","labels":{"kubernetes.io/machine":"m2","kubernetes.io/machineclass":"worker","kubernetes.io/cluster":%q}}]}`, second, testrig.OwnCluster)})
		}, notes{"machine m1": {"unknown"}, "server m2": {}, "machine m2": {}}, false, 1},
		"the server may not be read": {list.Query{}, func(r *rig, _, _ string) {
			r.Cloud.Inject(emptyList)
			r.Cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusForbidden})
		}, notes{"machine m1": {"unknown"}, "machine m2": {"unknown"}}, false, 1},
		"a gateway does not find it": {list.Query{}, func(r *rig, _, _ string) {
			r.Cloud.Inject(emptyList)
			r.Cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusNotFound, Body: "<html>", ContentType: "text/html"})
		}, notes{"machine m1": {"unknown"}, "machine m2": {"unknown"}}, false, 1},
		"one is gone": {list.Query{}, func(r *rig, first, _ string) {
			must(r, r.Cloud.RemoveServer(first))
		}, notes{"machine m1": {"no server"}, "server m2": {}, "machine m2": {}}, true, 1},
		"both are gone, and a Node is Ready": {cluster, func(r *rig, first, second string) {
			must(r, r.Cloud.RemoveServer(first))
			must(r, r.Cloud.RemoveServer(second))
		}, notes{"machine m1": {"no server"}, "machine m2": {"unknown"}}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			first, second := r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster)), r.Server("m2", testrig.Labels("m2", "worker", testrig.OwnCluster))
			r.Add(testrig.Machine("m1", "worker", first), testrig.Machine("m2", "worker", second), testrig.Node("m2", second, corev1.ConditionTrue))
			row.given(r, first, second)
			found := r.look(row.query)
			if diff := cmp.Diff(row.want, notesOf(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if known := found.Knows(list.PartServers) && found.Totals.Servers != nil; known != row.known {
				t.Errorf("got %v, %+v; want that servers are known: %t", found.Unread, found.Totals, row.known)
			}
			if reads := r.Cloud.CallCounts()["GetServer"]; reads != row.reads {
				t.Errorf("%d servers were read, want %d", reads, row.reads)
			}
		})
	}
}

func TestFewServersAreReadOneByOne(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		r.Add(testrig.Machine(fmt.Sprintf("m%02d", i), "worker", fmt.Sprintf("%s%02d", elsewhere[:len(elsewhere)-2], i)))
	}
	begin := time.Now()
	found := r.look(list.Query{})
	counts := map[string]int{}
	for _, machine := range found.Machines {
		counts[strings.Join(words(machine.Notes), ",")]++
	}
	reads := r.Cloud.CallCounts()["GetServer"]
	if reads == 0 || reads > 10 || counts["no server"] != reads || counts["unknown"] != 30-reads {
		t.Errorf("got %v after %d reads, want that what was not read is unknown", counts, reads)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

// The list of a cluster lacks servers that have lost its label: they are read by their IDs,
// and not looked for among all of the project's.
func TestServersWithoutTheLabelAreReadByID(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		name := fmt.Sprintf("m%02d", i)
		r.Add(testrig.Machine(name, "worker", r.Server(name, testrig.Labels(name, "worker", "typo"))))
	}
	r.Cloud.ResetCalls()
	found := r.look(list.Query{ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster})
	counts := map[string]int{}
	for _, machine := range found.Machines {
		counts[strings.Join(words(machine.Notes), ",")]++
	}
	if want := (map[string]int{"contradicting label " + testrig.ClusterKey: 8, "unknown": 12}); !cmp.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	if calls := r.Cloud.CallCounts(); calls["ListServers"] != 1 || calls["GetServer"] != 8 {
		t.Errorf("got calls %v", calls)
	}
}

func TestTotalsThatAreNotKnownAreMissing(t *testing.T) {
	inSecondRegion := func(request *http.Request) bool {
		return strings.Contains(request.URL.Path, "/regions/"+iaasmock.SecondRegion+"/")
	}
	for name, row := range map[string]struct {
		given func(r *rig)
		query list.Query
		want  string
	}{
		"all is read": {func(*rig) {}, list.Query{}, `{"servers":1,"active":1,"machines":1,"ready":0,"orphans":0}`},
		"no server is read": {func(r *rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		}, list.Query{}, `{"machines":1,"ready":0}`},
		"no orphan is read": {func(r *rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
		}, list.Query{Orphans: true}, `{"machines":1,"ready":0}`},
		"orphans of what is read": {func(r *rig) {
			r.Server("lost", testrig.Labels("lost", "worker", testrig.OwnCluster))
		}, list.Query{Orphans: true}, `{"servers":2,"active":2,"machines":1,"ready":0,"orphans":1}`},
		"no orphan of what is read": {func(*rig) {}, list.Query{Orphans: true}, `{"servers":1,"active":1,"machines":1,"ready":0,"orphans":0}`},
		"one region is not read": {func(r *rig) {
			r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Match: inSecondRegion, Status: http.StatusForbidden})
		}, list.Query{}, `{"machines":1,"ready":0}`},
		"the Secret is not there": {func(r *rig) {
			r.Access.SecretName = "nope"
		}, list.Query{}, `{"machines":1,"ready":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Add(testrig.Class("elsewhere", map[string]any{"region": iaasmock.SecondRegion}))
			r.Add(testrig.Machine("m1", "worker", r.Server("m1", testrig.Labels("m1", "worker", testrig.OwnCluster))))
			row.given(r)
			found := r.look(row.query)
			got, err := json.Marshal(found.Totals)
			must(r, err)
			if string(got) != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			for _, cluster := range found.Clusters {
				if known := cluster.Orphans != nil && cluster.Servers != nil; known != (found.Totals.Orphans != nil) {
					t.Errorf("got %+v of a cluster", cluster.Totals)
				}
			}
		})
	}
}
