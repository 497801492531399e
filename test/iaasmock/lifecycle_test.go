// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestServerLifecycle(t *testing.T) {
	m := openMock(t)
	created := m.want(201, "POST", inRegion+"/servers", serverBody(nil))
	id := created["id"].(string)
	if created["status"] != "CREATING" || created["launchedAt"] != nil {
		t.Errorf("created as %v", created)
	}

	m.clock.Step(boot - time.Nanosecond)
	m.wantStatus(id, "CREATING")
	m.clock.Step(time.Nanosecond)
	active := m.wantStatus(id, "ACTIVE")
	if active["powerStatus"] != "RUNNING" || active["launchedAt"] == nil {
		t.Errorf("active as %v", active)
	}

	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.wantStatus(id, "DELETING")
	m.clock.Step(remove - time.Nanosecond)
	m.wantStatus(id, "DELETING")
	if got := len(m.cloud.Servers()); got != 1 {
		t.Errorf("%d servers while deleting", got)
	}
	m.clock.Step(time.Nanosecond)
	m.wantStatus(id, "")
	m.want(404, "DELETE", inRegion+"/servers/"+id, nil)
	if _, there := m.cloud.Server(id); there || len(m.cloud.Servers()) > 0 {
		t.Error("the gone server is still shown")
	}
	want := iaasmock.Totals{
		ServersCreated: 1, ServersDeleted: 1, NICsCreated: 1, NICsDeleted: 1, VolumesCreated: 1, VolumesDeleted: 1,
	}
	if diff := cmp.Diff(want, m.cloud.History()); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestDeletionWhileCreating(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.clock.Step(boot - time.Second)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(2 * time.Second)
	if server := m.wantStatus(id, "DELETING"); server["launchedAt"] != nil {
		t.Errorf("it booted while it was deleted: %v", server)
	}
	m.clock.Step(remove)
	m.wantStatus(id, "")
}

func TestSecondDeletionDoesNotStartAnew(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove - time.Second)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(time.Second)
	m.wantStatus(id, "")

	failing := m.create(nil)
	m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, FinalStatus: "ERROR"})
	m.want(204, "DELETE", inRegion+"/servers/"+failing, nil)
	m.clock.Step(remove - time.Second)
	m.want(204, "DELETE", inRegion+"/servers/"+failing, nil)
	m.clock.Step(time.Second)
	m.wantStatus(failing, "ERROR")
}

func TestForcedStatusSticksUntilDeleted(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	if err := m.cloud.SetServerStatus(id, "ERROR", "No valid host was found."); err != nil {
		t.Fatal(err)
	}
	m.clock.Step(2 * boot)
	if got := m.wantStatus(id, "ERROR")["errorMessage"]; got != "No valid host was found." {
		t.Errorf("errorMessage is %v", got)
	}
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.wantStatus(id, "DELETING")

	// A deletion can fail half way, and be asked for again.
	if err := m.cloud.SetServerStatus(id, "ERROR", "gave up"); err != nil {
		t.Fatal(err)
	}
	m.clock.Step(2 * remove)
	m.wantStatus(id, "ERROR")
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove)
	m.wantStatus(id, "")

	if err := m.cloud.SetServerStatus(id, "ACTIVE", ""); err == nil {
		t.Error("the status of a server that is gone could be set")
	}
}

func TestRemovedByHand(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	if err := m.cloud.RemoveServer(id); err != nil {
		t.Fatal(err)
	}
	m.wantStatus(id, "")
	if nics := len(m.cloud.NICs()); nics != 1 {
		t.Errorf("%d NICs are left, want the catalogue's", nics)
	}
	if err := m.cloud.RemoveServer(id); err == nil {
		t.Error("it could be removed twice")
	}
}

func TestWhatSurvivesDeletion(t *testing.T) {
	bootOf := func(change object) object {
		boot := object{"size": 20, "source": object{"type": "image", "id": iaasmock.DefaultImageID}}
		for key, value := range change {
			boot[key] = value
		}
		return object{"bootVolume": boot}
	}
	fromVolume := object{"source": object{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
	fromVolumeDeleted := object{"source": fromVolume["source"], "deleteOnTermination": true}
	for _, row := range []struct {
		name          string
		change        object
		nics, volumes int // beside the catalogue's
	}{
		{name: "boot volume kept by default", change: bootOf(nil), volumes: 1},
		{name: "boot volume deleted on termination", change: bootOf(object{"deleteOnTermination": true})},
		{name: "existing boot volume kept", change: bootOf(fromVolume)},
		{name: "existing boot volume kept whatever was asked", change: bootOf(fromVolumeDeleted)},
		{name: "data volume kept", change: object{"volumes": []string{iaasmock.DefaultVolumeID}}},
		{name: "NIC of nicIds kept", change: object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}}},
		{name: "ephemeral disk", change: object{"imageId": iaasmock.DefaultImageID, "bootVolume": nil}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			nics, volumes := m.cloud.NICs(), m.cloud.Volumes()
			id := m.create(row.change)
			m.clock.Step(boot)
			m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
			m.clock.Step(remove)
			m.wantStatus(id, "")
			if got := len(m.cloud.NICs()) - len(nics); got != row.nics {
				t.Errorf("%d NICs are left, want %d", got, row.nics)
			}
			if got := len(m.cloud.Volumes()) - len(volumes); got != row.volumes {
				t.Errorf("%d volumes are left, want %d", got, row.volumes)
			}
			for _, nic := range m.cloud.NICs() {
				if nic.ServerID != "" {
					t.Errorf("NIC %s is still attached", nic.ID)
				}
			}
			for _, volume := range m.cloud.Volumes() {
				if volume.ServerID != "" || volume.Status != iaasmock.VolumeAvailable {
					t.Errorf("volume %s is %s of %q", volume.ID, volume.Status, volume.ServerID)
				}
			}
		})
	}
}

func TestEverythingAskedForArrives(t *testing.T) {
	m := openMock(t)
	id := m.create(object{
		"name": "worker-1", "availabilityZone": "eu01-2", "affinityGroup": iaasmock.DefaultAffinityGroupID,
		"keypairName": iaasmock.DefaultKeypairName, "userData": "I2Nsb3VkLWNvbmZpZwo=",
		"labels": object{"kubernetes.io/machine": "worker-1"}, "metadata": object{"a key": "v"},
		"securityGroups":      []string{iaasmock.DefaultSecurityGroupName},
		"serviceAccountMails": []string{"node@sa.stackit.cloud"},
		"agent":               object{"provisioned": true}, "volumes": []string{iaasmock.DefaultVolumeID},
		"networking": object{"networkId": iaasmock.DefaultDualStackNetworkID},
		"bootVolume": object{
			"size": 50, "performanceClass": "storage_premium_perf2", "deleteOnTermination": true,
			"source": object{"type": "snapshot", "id": iaasmock.DefaultSnapshotID},
		},
	})
	m.clock.Step(boot)
	got := m.server(id)
	yes := true
	want := iaasmock.Server{
		ID: id, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, Name: "worker-1",
		Status: "ACTIVE", PowerStatus: "RUNNING", Labels: map[string]string{"kubernetes.io/machine": "worker-1"},
		Metadata: map[string]string{"a key": "v"}, UserData: []byte("#cloud-config\n"),
		MachineType: iaasmock.DefaultMachineType, AvailabilityZone: "eu01-2",
		AffinityGroup: iaasmock.DefaultAffinityGroupID, KeypairName: iaasmock.DefaultKeypairName,
		SecurityGroups: []string{iaasmock.DefaultSecurityGroupID}, ServiceAccountMails: []string{"node@sa.stackit.cloud"},
		AgentProvisioned: &yes, NetworkID: iaasmock.DefaultDualStackNetworkID,
		BootVolume: &iaasmock.BootVolume{
			ID: got.BootVolume.ID, Size: 50, PerformanceClass: "storage_premium_perf2", DeleteOnTermination: true,
			SourceType: "snapshot", SourceID: iaasmock.DefaultSnapshotID,
		},
		VolumeIDs: []string{got.BootVolume.ID, iaasmock.DefaultVolumeID}, NICIDs: got.NICIDs,
		CreatedAt: got.CreatedAt, LaunchedAt: got.CreatedAt.Add(boot), UpdatedAt: got.CreatedAt.Add(boot),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	nic, _ := m.nic(got.NICIDs[0])
	if nic.ServerID != id || !nic.MadeByServer || nic.IPv4 != "10.1.0.2" || nic.IPv6 != "fd00:1::2" ||
		!cmp.Equal(nic.SecurityGroups, want.SecurityGroups) {
		t.Errorf("its NIC is %+v", nic)
	}
	if volume, _ := m.volume(iaasmock.DefaultVolumeID); volume.ServerID != id || volume.Status != iaasmock.VolumeAttached {
		t.Errorf("its data volume is %+v", volume)
	}
	if members := m.want(200, "GET", inRegion+"/affinity-groups/"+iaasmock.DefaultAffinityGroupID, nil)["members"]; !cmp.Equal(members, []any{id}) {
		t.Errorf("members of the affinity group: %v", members)
	}
}
