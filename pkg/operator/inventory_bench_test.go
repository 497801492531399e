// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator"
)

// fill makes servers with their Machines and Nodes.
func (r *rig) fill(count int) {
	r.t.Helper()
	ids := make([]string, count)
	group, ctx := errgroup.WithContext(r.t.Context())
	group.SetLimit(8)
	for i := range ids {
		group.Go(func() (err error) {
			name := fmt.Sprintf("m%04d", i)
			ids[i], err = r.tryServer(ctx, name, labels(name, "worker", ownCluster))
			return err
		})
	}
	must(r, group.Wait())
	for i, id := range ids {
		name := fmt.Sprintf("m%04d", i)
		r.add(machine(name, "worker", id), node(name, id, corev1.ConditionTrue))
	}
}

func TestCallsOfAnInventory(t *testing.T) {
	const count = 40
	r := newRig(t)
	r.fill(count)
	cluster := operator.Query{Addresses: true}
	must(r, cluster.SetCluster(clusterKey+"="+ownCluster))
	for name, row := range map[string]struct {
		query operator.Query
		calls map[string]int
	}{
		"without addresses": {operator.Query{}, map[string]int{"ListServers": 1}},
		"with addresses":    {operator.Query{Addresses: true}, map[string]int{"ListServers": 1, "ListProjectNICs": 1}},
		"of a cluster":      {cluster, map[string]int{"ListServers": 1, "ListProjectNICs": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r.cloud.ResetCalls()
			found := r.look(row.query)
			if *found.Totals.Servers != count || *found.Totals.Ready != count {
				t.Errorf("got %d servers, %d Machines ready", *found.Totals.Servers, *found.Totals.Ready)
			}
			calls := r.cloud.CallCounts()
			if fmt.Sprint(calls) != fmt.Sprint(row.calls) {
				t.Errorf("got calls %v, want %v", calls, row.calls)
			}
			for _, call := range r.cloud.Calls() {
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
	r.look(operator.Query{})
	r.cloud.ResetCalls()
	b.ReportAllocs()
	rounds := 0
	for b.Loop() {
		rounds++
		if found := r.look(operator.Query{Addresses: true}); *found.Totals.Ready != 1000 {
			b.Fatalf("got %d ready Machines", *found.Totals.Ready)
		}
	}
	calls := 0
	for _, count := range r.cloud.CallCounts() {
		calls += count
	}
	b.ReportMetric(float64(calls)/float64(rounds), "calls/op")
}
