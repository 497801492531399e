// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestZoneOfAServer(t *testing.T) {
	m := strictMock(t)
	inZone := func(zone string) string {
		return m.want(201, "POST", inRegion+"/volumes",
			object{"availabilityZone": zone, "bootable": true, "size": 20})["id"].(string)
	}
	fromVolume := func(id string) object { return object{"source": object{"type": "volume", "id": id}} }
	for _, row := range []struct {
		name   string
		change object
		code   int
		want   string // the zone, or the message of a refusal
	}{
		{"none asked for", nil, 201, "eu01-m"},
		{"asked for", object{"availabilityZone": "eu01-2"}, 201, "eu01-2"},
		{"unknown", object{"availabilityZone": "eu02-1"}, 400, "The requested availability zone is not available"},
		{"the existing boot volume's", object{"bootVolume": fromVolume(inZone("eu01-3"))}, 201, "eu01-3"},
		{
			"the same as the existing boot volume's",
			object{"availabilityZone": "eu01-3", "bootVolume": fromVolume(inZone("eu01-3"))}, 201, "eu01-3",
		},
		{
			"not the existing boot volume's",
			object{"availabilityZone": "eu01-2", "bootVolume": fromVolume(inZone("eu01-3"))}, 400,
			"The requested availability zone eu01-2 does not match the availability zone eu01-3 of the boot volume",
		},
		{
			"not the existing boot volume's, and unknown",
			object{"availabilityZone": "eu02-1", "bootVolume": fromVolume(inZone("eu01-3"))}, 400,
			"The requested availability zone is not available",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := len(m.cloud.Servers())
			answer := m.want(row.code, "POST", inRegion+"/servers", serverBody(row.change))
			if row.code == 201 {
				if answer["availabilityZone"] != row.want {
					t.Errorf("it is in %v, want %s", answer["availabilityZone"], row.want)
				}
				return
			}
			if answer["code"] != float64(row.code) || answer["msg"] != row.want {
				t.Errorf("refused with %v, want %s", answer, row.want)
			}
			if made := len(m.cloud.Servers()) - before; made != 0 {
				t.Errorf("%d servers were made", made)
			}
		})
	}
}

func TestZoneWithABootVolumeOfNone(t *testing.T) {
	catalogue := iaasmock.DefaultCatalogue()
	for i := range catalogue.Volumes {
		catalogue.Volumes[i].AvailabilityZone = ""
	}
	m := openMock(t, iaasmock.WithCatalogue(catalogue))
	fromVolume := object{"source": object{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
	id := m.create(object{"availabilityZone": "eu01-2", "bootVolume": fromVolume})
	if got := m.server(id).AvailabilityZone; got != "eu01-2" {
		t.Errorf("it is in %s", got)
	}
}
