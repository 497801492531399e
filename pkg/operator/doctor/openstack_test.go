// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestFromOpenStack(t *testing.T) {
	own, other := map[string]any{testrig.ClusterKey: testrig.OwnCluster}, map[string]any{testrig.ClusterKey: "x"}
	const came, named, left = "1 Machine: shoot--demo/m1", "NICs and volumes with their names: ", "of no server and no Machine: "
	for name, row := range map[string]struct {
		add    func(r *testrig.Rig)
		marked bool
		// want are parts of the findings, in their order.
		want []string
	}{
		"nothing":                         {func(*testrig.Rig) {}, false, nil},
		"a Machine":                       {func(*testrig.Rig) {}, true, []string{came}},
		"its volume":                      {func(r *testrig.Rig) { r.Volume("m1", nil) }, true, []string{came, named + "volume m1 ("}},
		"its NIC":                         {func(r *testrig.Rig) { r.NIC(iaasmock.DefaultNetworkID, "m1", nil) }, true, []string{came, named + "NIC m1 ("}},
		"another cluster's of its name":   {func(r *testrig.Rig) { r.Volume("m1", other) }, true, []string{came}},
		"of a Machine that is not marked": {func(r *testrig.Rig) { r.Volume("m1", own) }, false, nil},
		"left over":                       {func(r *testrig.Rig) { r.Volume("m9", own) }, false, []string{left + "volume m9 ("}},
		"a NIC that is left over":         {func(r *testrig.Rig) { r.NIC(iaasmock.DefaultNetworkID, "m9", own) }, false, []string{left + "NIC m9 ("}},
		"of another cluster":              {func(r *testrig.Rig) { r.Volume("m9", other) }, false, nil},
		"left over with OpenStack's tag": {func(r *testrig.Rig) {
			r.Volume("m9", map[string]any{"kubernetes.io-cluster-" + testrig.OwnCluster: "1"})
		}, false, []string{left + "volume m9 ("}},
		"its name in another network": {func(r *testrig.Rig) { r.NIC(iaasmock.DefaultDualStackNetworkID, "m1", nil) }, true, []string{came}},
		"named as a Machine once was": {func(r *testrig.Rig) {
			pool := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "pool"}}
			pool.Spec.Template.Spec.Class.Name = "worker"
			r.Add(pool)
			r.Volume("pool-5f8b7-x2x4d", nil)
			r.Volume("pool-5f8b7", nil)
		}, false, []string{left + "volume pool-5f8b7-x2x4d ("}},
		"volumes may not be listed, and nobody needs it": {func(r *testrig.Rig) { r.Cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Status: 403}) }, false, nil},
		"of a name alone": {func(r *testrig.Rig) { r.Volume("m9", nil) }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testrig.New(t)
			machine := testrig.Machine("m1", "worker", r.Server("m1", nil))
			if row.marked {
				metav1.SetMetaDataAnnotation(&machine.ObjectMeta, "stackit.cloud/migrated-machine", "true")
			}
			r.Add(machine)
			row.add(r)
			found := examineServers(t, r, subjectOpenStack)
			if len(found) != len(row.want) {
				t.Fatalf("got %v, want %q", found, row.want)
			}
			for i, want := range row.want {
				if found[i].Verdict != report.Hint || !strings.Contains(found[i].Found, want) {
					t.Errorf("got %v, want a hint %q", found[i], want)
				}
			}
		})
	}
}

func TestVolumesOfMachinesFromOpenStackThatMayNotBeListed(t *testing.T) {
	for status, want := range map[int]report.Verdict{403: report.Wrong, 500: report.Unknown} {
		r := testrig.New(t)
		machine := testrig.Machine("m1", "worker", r.Server("m1", nil))
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, "stackit.cloud/migrated-machine", "true")
		r.Add(machine)
		r.Cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Status: status})
		found := examineServers(t, r, subjectOpenStack)
		if len(found) != 2 || found[1].Verdict != want {
			t.Errorf("with %d: %v, want %v", status, found, want)
		}
	}
}
