// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import "testing"

func TestZoneOfAServer(t *testing.T) {
	for _, row := range []struct{ name, asked, bootVolume, want string }{
		{"none asked for", "", "", "eu01-m"},
		{"asked for", "eu01-2", "", "eu01-2"},
		{"the existing boot volume's", "", "eu01-3", "eu01-3"},
		{"the same as the existing boot volume's", "eu01-3", "eu01-3", "eu01-3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			change := object{}
			if row.asked != "" {
				change["availabilityZone"] = row.asked
			}
			if row.bootVolume != "" {
				disk := object{"availabilityZone": row.bootVolume, "bootable": true, "size": 20}
				id := m.want(201, "POST", inRegion+"/volumes", disk)["id"].(string)
				change["bootVolume"] = object{"source": object{"type": "volume", "id": id}}
			}
			id := m.create(change)
			m.clock.Step(boot)
			if shown := m.wantStatus(id, "ACTIVE")["availabilityZone"]; shown != row.want {
				t.Errorf("it is in %v, want %s", shown, row.want)
			}
		})
	}
}
