// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/inventory"
)

// migratedAnnotation is what STACKIT's extension sets.
const migratedAnnotation = "stackit.cloud/migrated-machine"

func TestMachinesFromOpenStack(t *testing.T) {
	for name, row := range map[string]struct {
		providerID   string
		unmarked     bool
		labels, more map[string]string
		servers      int
		// notes are the Machine's, then the first server's.
		notes string
	}{
		"marked, no ID":             {servers: 1, notes: "[by name from OpenStack] [by name]"},
		"not marked":                {unmarked: true, servers: 0, notes: "[no server] []"},
		"of another cluster":        {labels: map[string]string{testrig.ClusterKey: "x"}, servers: 0, notes: "[from OpenStack no server] []"},
		"of another cluster's tag":  {labels: map[string]string{"kubernetes.io-cluster-x": "1"}, servers: 0, notes: "[from OpenStack no server] []"},
		"an ID of OpenStack's":      {unmarked: true, providerID: "openstack:///RegionOne/", servers: 1, notes: "[from OpenStack] []"},
		"that, and both our labels": {unmarked: true, providerID: "openstack:///RegionOne/", labels: testrig.Labels("m1", "worker", testrig.OwnCluster), servers: 1, notes: "[ProviderID in another form from OpenStack] [ProviderID in another form]"},
		"two servers of the name":   {more: map[string]string{"a": "b"}, servers: 2, notes: "[by name by name duplicate from OpenStack] [by name]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			id := r.Server("m1", row.labels)
			if row.more != nil {
				r.Server("m1", row.more)
			}
			machine := testrig.Machine("m1", "worker", "")
			if row.providerID != "" {
				machine.Spec.ProviderID = row.providerID + id
			}
			if !row.unmarked {
				metav1.SetMetaDataAnnotation(&machine.ObjectMeta, migratedAnnotation, "true")
			}
			r.Add(machine)
			found := r.look(inventory.Query{})
			first := []string{}
			for i := range found.Servers {
				if notes := words(found.Servers[i].Notes); i == 0 || len(notes) < len(first) {
					first = notes
				}
			}
			if got := fmt.Sprint(words(found.Machines[0].Notes), " ", first); len(found.Servers) != row.servers || got != row.notes {
				t.Errorf("got %d servers, %s, want %d, %s", len(found.Servers), got, row.servers, row.notes)
			}
		})
	}
}
