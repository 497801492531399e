// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const noHost = "No valid host was found. There are not enough hosts available."

func TestCapacity(t *testing.T) {
	m := openMock(t, iaasmock.WithCapacity("c2i.2", "eu01-1", 1), iaasmock.WithCapacity("", "eu01-2", 0), iaasmock.WithCapacity("", "", 3))
	type order struct{ machineType, zone string }
	for _, row := range []struct {
		order
		room bool
	}{
		{order{"c2i.2", "eu01-1"}, true},
		{order{"c2i.2", "eu01-1"}, false},
		{order{"t1.1", "eu01-1"}, true},
		{order{"t1.1", "eu01-2"}, false},
		{order{"c2i.2", "eu01-3"}, true},
		{order{"t1.1", "eu01-3"}, false}, // three are placed already
	} {
		id := m.create(object{"machineType": row.machineType, "availabilityZone": row.zone})
		m.wantStatus(id, "CREATING")
		m.clock.Step(boot)
		if row.room {
			m.wantStatus(id, "ACTIVE")
			continue
		}
		if got := m.wantStatus(id, "ERROR")["errorMessage"]; got != noHost {
			t.Errorf("%v ends with %v", row.order, got)
		}
	}
}

func TestCapacityComesBack(t *testing.T) {
	m := openMock(t, iaasmock.WithCapacity("", "", 1))
	first := m.create(nil)
	failed := m.create(nil)
	m.clock.Step(boot)
	m.wantStatus(failed, "ERROR")
	m.want(204, "DELETE", inRegion+"/servers/"+first, nil)
	early := m.create(nil)
	m.clock.Step(boot)
	m.wantStatus(early, "ERROR") // it came while the first was still going

	m.wantStatus(m.create(nil), "CREATING")
	m.cloud.SetCapacity("", "", 3)
	more := m.create(nil)
	m.cloud.SetCapacity("", "", 0)
	none := m.create(nil)
	m.cloud.SetCapacity("", "", -1)
	free := m.create(nil)
	m.clock.Step(boot)
	for id, status := range map[string]string{more: "ACTIVE", none: "ERROR", free: "ACTIVE", failed: "ERROR"} {
		m.wantStatus(id, status)
	}
	for _, server := range m.cloud.Servers() {
		m.want(204, "DELETE", inRegion+"/servers/"+server.ID, nil)
	}
	m.clock.Step(remove)
	if servers, nics, volumes := len(m.cloud.Servers()), len(m.cloud.NICs()), len(m.cloud.Volumes()); servers != 0 || nics != 1 || volumes != 2 {
		t.Errorf("left are %d servers, %d NICs, %d volumes", servers, nics, volumes)
	}
}
