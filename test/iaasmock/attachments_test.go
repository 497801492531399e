// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const nothing = "99999999-0000-4000-8000-000000000001"

// running makes a server and lets it boot.
func (m *mock) running(change object) (id, path string) {
	m.t.Helper()
	id = m.create(change)
	m.clock.Step(boot)
	m.wantStatus(id, "ACTIVE")
	return id, inRegion + "/servers/" + id
}

// flag is a boolean that has to be in the answer.
func flag(answer object, name string) bool { return answer[name].(bool) }

func TestVolumeAttachments(t *testing.T) {
	m := openMock(t)
	id, server := m.running(nil)
	path := server + "/volume-attachments/" + iaasmock.DefaultVolumeID
	m.want(404, "GET", path, nil)
	m.want(404, "DELETE", path, nil)

	made := m.want(202, "PUT", path, nil)
	if made["serverId"] != id || made["volumeId"] != iaasmock.DefaultVolumeID || flag(made, "deleteOnTermination") {
		t.Errorf("attached as %v", made)
	}
	if volume := m.want(200, "GET", inRegion+"/volumes/"+iaasmock.DefaultVolumeID, nil); volume["status"] != "ATTACHED" || volume["serverId"] != id {
		t.Errorf("the volume is %v", volume)
	}
	if volumes := m.wantStatus(id, "ACTIVE")["volumes"].([]any); len(volumes) != 2 || volumes[1] != iaasmock.DefaultVolumeID {
		t.Errorf("the server shows %v", volumes)
	}
	if got := m.list("/servers/" + id + "/volume-attachments"); len(got) != 2 {
		t.Errorf("attachments %v", got)
	}
	m.want(409, "PUT", path, nil)
	if changed := m.want(200, "PATCH", path, object{"deleteOnTermination": true}); !flag(changed, "deleteOnTermination") {
		t.Errorf("changed to %v", changed)
	}
	if got := m.want(200, "GET", path, nil); !flag(got, "deleteOnTermination") {
		t.Errorf("later it is %v", got)
	}

	m.want(204, "DELETE", path, nil)
	m.want(404, "GET", path, nil)
	volume, _ := m.volume(iaasmock.DefaultVolumeID)
	if volume.Status != iaasmock.VolumeAvailable || volume.ServerID != "" || volume.DeleteOnTermination {
		t.Errorf("detached, the volume is %+v", volume)
	}
	if volumes := m.wantStatus(id, "ACTIVE")["volumes"].([]any); len(volumes) != 1 {
		t.Errorf("the server shows %v", volumes)
	}
}

func TestVolumeAttachmentsThatAreRefused(t *testing.T) {
	m := openMock(t)
	id, server := m.running(nil)
	_, other := m.running(nil)
	data := "/volume-attachments/" + iaasmock.DefaultVolumeID
	m.want(404, "PUT", server+"/volume-attachments/"+nothing, nil)
	m.want(404, "PUT", inRegion+"/servers/"+nothing+data, nil)
	m.want(202, "PUT", server+data, nil)
	m.want(409, "PUT", other+data, nil)
	m.want(404, "GET", other+data, nil)
	m.want(404, "DELETE", other+data, nil)
	m.want(409, "DELETE", server+"/volume-attachments/"+m.server(id).BootVolume.ID, nil)
	for status, code := range map[string]int{
		"CREATING": 409, "DELETING": 409, "ERROR": 409, "RESCUE": 409, "INACTIVE": 204,
	} {
		m.set(id, status)
		if got, answer := m.do("DELETE", server+data, nil); got != code {
			t.Errorf("while %s: %d %v", status, got, answer)
		}
		if code == 204 {
			m.want(202, "PUT", server+data, nil)
		}
	}
	m.set(id, "DELETING")
	m.want(409, "PUT", server+"/volume-attachments/"+iaasmock.DefaultBootVolumeID, nil)
}

func TestDeleteOnTermination(t *testing.T) {
	for _, row := range []struct {
		name       string
		boot, data any // what is asked for later, if anything
		want       []string
	}{
		{"as made: the boot volume goes", nil, nil, []string{iaasmock.DefaultVolumeID}},
		{"data goes too", nil, true, nil},
		{"boot stays after all", false, nil, []string{iaasmock.DefaultVolumeID, "boot"}},
		{"data on second thoughts", nil, false, []string{iaasmock.DefaultVolumeID}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			id, server := m.running(object{"volumes": []string{iaasmock.DefaultVolumeID}})
			bootVolume := m.server(id).BootVolume.ID
			for volume, value := range map[string]any{bootVolume: row.boot, iaasmock.DefaultVolumeID: row.data} {
				if value != nil {
					m.want(200, "PATCH", server+"/volume-attachments/"+volume, object{"deleteOnTermination": value})
				}
			}
			m.want(204, "DELETE", server, nil)
			m.clock.Step(remove)
			want := map[string]bool{iaasmock.DefaultBootVolumeID: true}
			for _, id := range row.want {
				if id == "boot" {
					id = bootVolume
				}
				want[id] = true
			}
			for _, volume := range m.cloud.Volumes() {
				if !want[volume.ID] || volume.Status != iaasmock.VolumeAvailable || volume.DeleteOnTermination {
					t.Errorf("left is %+v", volume)
				}
				delete(want, volume.ID)
			}
			if len(want) > 0 {
				t.Errorf("gone are %v", want)
			}
		})
	}
}

func TestVolumeChanges(t *testing.T) {
	m := openMock(t)
	path := inRegion + "/volumes/" + iaasmock.DefaultVolumeID
	changed := m.want(200, "PATCH", path, object{
		"name": "renamed", "description": "text", "bootable": true, "labels": object{"a": "b"},
		"imageConfig": object{"uefi": true, "diskBus": nil},
	})
	if changed["name"] != "renamed" || changed["description"] != "text" || !flag(changed, "bootable") || changed["labels"].(object)["a"] != "b" {
		t.Errorf("changed to %v", changed)
	}
	config := m.want(200, "PATCH", path, object{"labels": object{"a": nil}, "imageConfig": object{"bootMenu": true}})["imageConfig"].(object)
	if !flag(config, "uefi") || !flag(config, "bootMenu") {
		t.Errorf("imageConfig is %v", config)
	}
	if got := m.want(200, "GET", path, nil); got["name"] != "renamed" || len(got["labels"].(object)) > 0 {
		t.Errorf("later it is %v", got)
	}
	m.want(404, "PATCH", inRegion+"/volumes/"+nothing, object{})
	m.want(400, "PATCH", path, object{"labels": object{"stackit-x": "a"}})

	m.want(202, "POST", path+"/resize", object{"size": 30})
	for _, size := range []int{30, 29, 0, 16001} {
		m.want(400, "POST", path+"/resize", object{"size": size})
	}
	m.want(400, "POST", path+"/resize", nil)
	if got := m.want(200, "GET", path, nil)["size"]; got != float64(30) {
		t.Errorf("its size is %v", got)
	}
	_, server := m.running(nil)
	m.want(202, "PUT", server+"/volume-attachments/"+iaasmock.DefaultVolumeID, nil)
	m.want(202, "POST", path+"/resize", object{"size": 31})
}

func TestPerformanceClasses(t *testing.T) {
	m := strictMock(t)
	if got := m.list("/volume-performance-classes"); len(got) != 5 {
		t.Errorf("listed %v", got)
	}
	if got := m.list("/volume-performance-classes?label_selector=vendor"); len(got) != 0 {
		t.Errorf("listed by label %v", got)
	}
	got := m.want(200, "GET", inRegion+"/volume-performance-classes/storage_premium_perf6", nil)
	if got["iops"] != float64(5000) || got["throughput"] != float64(200) {
		t.Errorf("perf6 is %v", got)
	}
	m.want(404, "GET", inRegion+"/volume-performance-classes/storage_slow", nil)
	volume := object{"availabilityZone": "eu01-1", "size": 1, "performanceClass": "storage_slow"}
	m.want(404, "POST", inRegion+"/volumes", volume)
	body := serverBody(nil)
	body["bootVolume"].(object)["performanceClass"] = "storage_slow"
	m.want(404, "POST", inRegion+"/servers", body)

	catalogue := iaasmock.DefaultCatalogue()
	catalogue.PerformanceClasses = nil
	openMock(t, iaasmock.WithCatalogue(catalogue)).want(201, "POST", inRegion+"/volumes", volume)
}
