// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
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
			found := r.look(list.Query{})
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

// attached makes a server with a NIC and a boot volume that are there.
func attached(r *rig, name, nicID, volumeID string) {
	r.T.Helper()
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, name, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nicID}},
	})
	payload.BootVolume = &iaas.BootVolume{Source: iaas.NewBootVolumeSource(volumeID, "volume")}
	if _, err := r.API.API.CreateServer(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(*payload).Execute(); err != nil {
		r.T.Fatal(err)
	}
}

// shown are the NICs and volumes with their notes.
func shown(found *list.Inventory) string {
	var all []string
	for i := range found.Attachables {
		one := &found.Attachables[i]
		all = append(all, fmt.Sprint(one.Kind, " ", one.Name, " ", strings.Join(words(one.Notes), " ")))
	}
	return strings.Join(all, ", ")
}

func TestAttachables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	own, other := map[string]any{testrig.ClusterKey: testrig.OwnCluster}, map[string]any{testrig.ClusterKey: "x"}
	came := testrig.Machine("m1", "here", r.Server("m1", nil))
	metav1.SetMetaDataAnnotation(&came.ObjectMeta, migratedAnnotation, "true")
	abroad := testrig.Machine("m3", "worker", "")
	abroad.Namespace = "elsewhere"
	r.Add(testrig.Class("here", map[string]any{"labels": own, "networking": map[string]any{"networkId": iaasmock.DefaultNetworkID}}))
	r.Add(came, testrig.Machine("m2", "worker", ""), abroad,
		deployment("pool", "here"))
	for _, name := range []string{"m1", "m2", "m3", "pool-1", "pvc-1"} {
		r.Volume(name, nil)
	}
	r.Volume("m1", other)
	r.NIC(iaasmock.DefaultNetworkID, "m1", nil)
	r.NIC(iaasmock.DefaultDualStackNetworkID, "m1", own)
	r.NIC(iaasmock.DefaultNetworkID, "lost", own)
	r.NIC(iaasmock.DefaultNetworkID, "lost", other)
	r.Volume("pool-5f8b7-x2x4d", nil)

	attached(r, "other", r.NIC(iaasmock.DefaultNetworkID, "m1", nil), r.Volume("other", nil))

	for name, row := range map[string]struct {
		query list.Query
		fault iaasmock.Fault
		want  string
		// unread is what is said not to be known.
		unread string
	}{
		"all":           {query: list.Query{}, want: "NIC lost left over, NIC m1 from OpenStack, volume m1 from OpenStack, volume pool-5f8b7-x2x4d left over"},
		"a Machine's":   {query: list.Query{Machine: "m1"}, want: "NIC m1 from OpenStack, volume m1 from OpenStack"},
		"a class's":     {query: list.Query{Class: "here"}, want: "NIC m1 from OpenStack, volume m1 from OpenStack"},
		"a cluster's":   {query: list.Query{ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster}, want: "NIC lost left over, NIC m1 from OpenStack, volume m1 from OpenStack"},
		"of no volumes": {fault: iaasmock.Fault{Operation: "ListVolumes", Status: 403}, unread: "NICs and volumes unknown: "},
	} {
		t.Run(name, func(t *testing.T) {
			if row.fault.Operation != "" {
				defer r.Cloud.Inject(row.fault)()
			}
			row.query.Attachables = true
			found := r.look(row.query)
			if got := shown(found); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if got := fmt.Sprint(found.Unread); !strings.Contains(got, row.unread) || row.unread == "" && len(found.Unread) > 0 {
				t.Errorf("unread: %s, want %q", got, row.unread)
			}
		})
	}
}

// Somebody may delete by hand what is shown: what anything says is another's is not.
func TestAttachablesOfOthers(t *testing.T) {
	t.Parallel()
	const tag = "kubernetes.io-cluster-"
	own := map[string]any{testrig.ClusterKey: testrig.OwnCluster}
	for name, add := range map[string]func(r *rig){
		"a volume of data": func(r *rig) {
			payload := iaas.CreateVolumePayload{Name: new("pvc-1"), Size: new(int64(20)), AvailabilityZone: iaasmock.DefaultAvailabilityZone, Labels: own}
			if _, err := r.API.API.CreateVolume(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateVolumePayload(payload).Execute(); err != nil {
				r.T.Fatal(err)
			}
		},
		"of a pool's name, with another cluster's label": func(r *rig) { r.Volume("near-5f8b7-x2x4d", map[string]any{testrig.ClusterKey: "x"}) },
		"of a pool's name, with another cluster's tag":   func(r *rig) { r.Volume("near-5f8b7-x2x4d", map[string]any{tag + "x": "1"}) },
		"with the cluster's label and another's tag":     func(r *rig) { r.Volume("v", map[string]any{testrig.ClusterKey: testrig.OwnCluster, tag + "x": "1"}) },
		"of a Machine by its label": func(r *rig) {
			r.Add(testrig.Machine("m2", "worker", ""))
			r.Volume("m2-data", map[string]any{testrig.ClusterKey: testrig.OwnCluster, "kubernetes.io/machine": "m2"})
		},
		"a NIC that a class names": func(r *rig) {
			nic := r.NIC(iaasmock.DefaultNetworkID, "fixed", own)
			r.Add(testrig.Class("fixed", map[string]any{"labels": own, "networking": map[string]any{"nicIds": []any{nic}}}))
		},
		"a boot volume that a class names": func(r *rig) {
			source := map[string]any{"type": "volume", "id": r.Volume("golden", own)}
			r.Add(testrig.Class("golden", map[string]any{"labels": own, "bootVolume": map[string]any{"source": source}}))
		},
		"on another's server, of a Machine without one": func(r *rig) {
			came := testrig.Machine("m8", "worker", "")
			metav1.SetMetaDataAnnotation(&came.ObjectMeta, migratedAnnotation, "true")
			r.Add(came)
			attached(r, "x", r.NIC(iaasmock.DefaultNetworkID, "m8", nil), r.Volume("m8", nil))
		},
		"of a Machine with a server here, whose class has moved": func(r *rig) {
			r.Add(testrig.Class("moved", map[string]any{"labels": own, "region": iaasmock.SecondRegion}))
			r.Add(testrig.Machine("m7", "moved", r.Server("m7", testrig.Labels("m7", "moved", testrig.OwnCluster))))
			r.Volume("m7", own)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Add(deployment("near", "worker"))
			add(r)
			for _, query := range []list.Query{{}, {ClusterKey: testrig.ClusterKey, ClusterValue: testrig.OwnCluster}} {
				query.Attachables = true
				if got := shown(r.look(query)); got != "" {
					t.Errorf("%+v shows %s", query, got)
				}
			}
		})
	}
}

// Names are of a project and region: what is elsewhere is another's.
func TestAttachablesOfSeveralPlaces(t *testing.T) {
	t.Parallel()
	own := map[string]any{testrig.ClusterKey: testrig.OwnCluster}
	for name, row := range map[string]struct {
		add  func(r *rig)
		want string
	}{
		"a Machine's name, in its region":          {func(r *rig) { volumeAbroad(r, "m7") }, "volume m7 from OpenStack"},
		"a Machine's name, in another region":      {func(r *rig) { r.Volume("m7", nil) }, ""},
		"that, with the cluster's label":           {func(r *rig) { r.Volume("m7", own) }, "volume m7 left over"},
		"of a MachineDeployment in another region": {func(r *rig) { r.Volume("far-5f8b7-x2x4d", nil) }, ""},
		"of one here": {func(r *rig) { r.Volume("near-5f8b7-x2x4d", nil) }, "volume near-5f8b7-x2x4d left over"},
		"a name that begins so and is no Machine's":           {func(r *rig) { r.Volume("near-data-disk1", nil) }, ""},
		"on the server of a Machine without ID":               {func(r *rig) { attached(r, "m8", r.NIC(iaasmock.DefaultNetworkID, "m8", nil), r.Volume("m8", nil)) }, "NIC m8 from OpenStack, volume m8 from OpenStack"},
		"on a server of another name than such a Machine has": {func(r *rig) { attached(r, "x", r.NIC(iaasmock.DefaultNetworkID, "m8", nil), r.Volume("m8", nil)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			abroad := testrig.Class("abroad", map[string]any{"labels": own, "region": iaasmock.SecondRegion})
			r.Add(abroad, deployment("far", "abroad"), deployment("near", "worker"))
			for machine, class := range map[string]string{"m7": "abroad", "m8": "worker"} {
				came := testrig.Machine(machine, class, "")
				metav1.SetMetaDataAnnotation(&came.ObjectMeta, migratedAnnotation, "true")
				r.Add(came)
			}
			row.add(r)
			found := r.look(list.Query{Attachables: true})
			if got := shown(found); got != row.want || len(found.Unread) > 0 {
				t.Errorf("got %q, want %q; unread: %v", got, row.want, found.Unread)
			}
		})
	}
}

func deployment(name, class string) *v1alpha1.MachineDeployment {
	made := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: name}}
	made.Spec.Template.Spec.Class.Name = class
	return made
}

func volumeAbroad(r *rig, name string) {
	r.T.Helper()
	_, err := r.API.API.CreateVolume(r.T.Context(), iaasmock.DefaultProjectID, iaasmock.SecondRegion).CreateVolumePayload(iaas.CreateVolumePayload{
		Name: &name, Size: new(int64(20)), AvailabilityZone: "eu02-1", Bootable: new(true)}).Execute()
	if err != nil {
		r.T.Fatal(err)
	}
}
