// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
)

// fill makes servers with their Machines and Nodes.
func (r *rig) fill(count int) {
	r.T.Helper()
	ids := make([]string, count)
	group, ctx := errgroup.WithContext(r.T.Context())
	group.SetLimit(8)
	for i := range ids {
		group.Go(func() (err error) {
			name := fmt.Sprintf("m%04d", i)
			ids[i], err = r.TryServer(ctx, name, testrig.Labels(name, "worker", testrig.OwnCluster))
			return err
		})
	}
	must(r, group.Wait())
	for i, id := range ids {
		name := fmt.Sprintf("m%04d", i)
		r.Add(testrig.Machine(name, "worker", id), testrig.Node(name, id, corev1.ConditionTrue))
	}
}

func TestCallsOfAnInventory(t *testing.T) {
	const count = 40
	r := newRig(t)
	r.fill(count)
	cluster := list.Query{Addresses: true}
	must(r, cluster.SetCluster(testrig.ClusterKey+"="+testrig.OwnCluster))
	for name, row := range map[string]struct {
		query list.Query
		calls map[string]int
	}{
		"without addresses": {list.Query{}, map[string]int{"ListServers": 1}},
		"with addresses":    {list.Query{Addresses: true}, map[string]int{"ListServers": 1, "ListProjectNICs": 1}},
		"of a cluster":      {cluster, map[string]int{"ListServers": 1, "ListProjectNICs": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r.Cloud.ResetCalls()
			found := r.look(row.query)
			if *found.Totals.Servers != count || *found.Totals.Ready != count {
				t.Errorf("got %d servers, %d Machines ready", *found.Totals.Servers, *found.Totals.Ready)
			}
			calls := r.Cloud.CallCounts()
			if fmt.Sprint(calls) != fmt.Sprint(row.calls) {
				t.Errorf("got calls %v, want %v", calls, row.calls)
			}
			for _, call := range r.Cloud.Calls() {
				if call.Query.Get("details") == "true" {
					t.Error("details were asked for: they carry user data")
				}
				if selector := call.Query.Get("label_selector"); call.Operation == "ListServers" && (selector != "") != (row.query.ClusterKey != "") {
					t.Errorf("got selector %q", selector)
				}
			}
		})
	}
}

// BenchmarkInventory reads 1,000 servers with Machines, Nodes and addresses.
func BenchmarkInventory(b *testing.B) {
	r := newRig(b)
	r.fill(1000)
	r.look(list.Query{})
	r.Cloud.ResetCalls()
	b.ReportAllocs()
	rounds := 0
	for b.Loop() {
		rounds++
		if found := r.look(list.Query{Addresses: true}); *found.Totals.Ready != 1000 {
			b.Fatalf("got %d ready Machines", *found.Totals.Ready)
		}
	}
	calls := 0
	for _, count := range r.Cloud.CallCounts() {
		calls += count
	}
	b.ReportMetric(float64(calls)/float64(rounds), "calls/op")
}
