// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// list and clean call the same servers orphans.
func TestTheTasksAgreeOnOrphans(t *testing.T) {
	named := func(name, providerID string) func(id string) *v1alpha1.Machine {
		return func(id string) *v1alpha1.Machine {
			machine := testrig.Machine(name, "worker", "")
			machine.Spec.ProviderID = strings.ReplaceAll(providerID, "ID", id)
			return machine
		}
	}
	own := func(machine, class string, more map[string]string) map[string]string {
		labels := testrig.Labels(machine, class, testrig.OwnCluster)
		maps.Copy(labels, more)
		return labels
	}
	states := map[string]struct {
		labels  map[string]string
		status  string
		machine func(id string) *v1alpha1.Machine
		orphan  bool
	}{
		"active":             {labels: own("active", "worker", nil), orphan: true},
		"in-error":           {labels: own("in-error", "worker", nil), status: "ERROR", orphan: true},
		"in-creation":        {labels: own("in-creation", "worker", nil), status: "CREATING", orphan: true},
		"going":              {labels: own("going", "worker", nil), status: "DELETING", orphan: true},
		"of-an-old-class":    {labels: own("of-an-old-class", "old", nil), orphan: true},
		"under-two-keys":     {labels: own("under-two-keys", "old", map[string]string{"a.io/cluster": testrig.OwnCluster}), orphan: true},
		"label-edited":       {labels: own("another", "old", nil), orphan: true},
		"of-two-clusters":    {labels: own("of-two-clusters", "worker", map[string]string{"a.io/cluster": "x"})},
		"of-another-cluster": {labels: testrig.Labels("of-another-cluster", "worker", "x")},
		"of-no-cluster":      {labels: testrig.Labels("of-no-cluster", "worker", "")},
		"without-machine":    {labels: map[string]string{testrig.ClusterKey: testrig.OwnCluster, provider.StackitMachineClassLabel: "worker"}},
		"without-class":      {labels: map[string]string{testrig.ClusterKey: testrig.OwnCluster, provider.StackitMachineLabel: "without-class"}},
		"unlabelled":         {},
		"named-by-id":        {labels: own("named-by-id", "worker", nil), machine: named("m1", "stackit://ID")},
		"named-by-openstack": {labels: own("named-by-openstack", "worker", nil), machine: named("m2", "openstack:///eu01/ID")},
		"named-by-label":     {labels: own("m3", "worker", nil), machine: named("m3", "")},
		"named-by-name":      {labels: own("m4", "worker", nil), machine: named("named-by-name", "")},
		"named-and-going":    {labels: own("m5", "worker", nil), status: "DELETING", machine: named("m5", "stackit://ID")},
	}
	r := testrig.New(t)
	ids := map[string]string{}
	for name, state := range states {
		id := r.Server(name, state.labels)
		ids[id] = name
		if state.status != "" {
			if err := r.Cloud.SetServerStatus(id, state.status, ""); err != nil {
				t.Fatal(err)
			}
		}
		if state.machine != nil {
			r.Add(state.machine(id))
		}
	}
	r.MakeClusters()
	r.Access.Target = nil

	said := map[string][]string{}
	for _, server := range list.Read(t.Context(), r.Access, list.Query{Orphans: true}).Servers {
		said[ids[server.ID]] = append(said[ids[server.ID]], "list")
	}
	plan, err := clean.Make(t.Context(), r.Access, clean.Options{ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster, Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Orphans {
		said[plan.Orphans[i].Name] = append(said[plan.Orphans[i].Name], "clean")
	}
	for _, kept := range plan.Kept {
		if kept.Withheld {
			said[kept.Name] = append(said[kept.Name], "clean")
		}
	}
	for name, state := range states {
		want := "[]"
		if state.orphan {
			want = "[list clean]"
		}
		if got := fmt.Sprint(said[name]); got != want {
			t.Errorf("%s: an orphan for %s, want %s", name, got, want)
		}
	}
}
