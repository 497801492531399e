// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestVolumesThatStay(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"volumes": []string{iaasmock.DefaultVolumeID}})
	m.clock.Step(boot)
	bootVolume := m.server(id).BootVolume.ID
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove)
	left := map[string]string{}
	for _, volume := range m.cloud.Volumes() {
		left[volume.ID] = volume.Status
	}
	if left[iaasmock.DefaultVolumeID] != iaasmock.VolumeAvailable || left[bootVolume] != "" || len(left) != 2 {
		t.Errorf("left are %v", left)
	}
}

func TestVolumeChanges(t *testing.T) {
	m := openMock(t)
	path := inRegion + "/volumes/" + iaasmock.DefaultVolumeID
	changed := m.want(200, "PATCH", path, object{"name": "renamed", "description": "text", "bootable": true, "labels": object{"a": "b"}})
	if bootable, _ := changed["bootable"].(bool); !bootable || changed["name"] != "renamed" || changed["description"] != "text" || changed["labels"].(object)["a"] != "b" {
		t.Errorf("changed to %v", changed)
	}
	m.want(200, "PATCH", path, object{"labels": object{"a": nil}})
	if got := m.want(200, "GET", path, nil); got["name"] != "renamed" || len(got["labels"].(object)) > 0 {
		t.Errorf("later it is %v", got)
	}
	m.want(404, "PATCH", inRegion+"/volumes/"+nothing, object{})
	m.want(400, "PATCH", path, object{"labels": object{"stackit-x": "a"}})
}

func TestPerformanceClasses(t *testing.T) {
	m := openMock(t)
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
}
