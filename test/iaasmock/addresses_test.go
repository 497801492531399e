// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func smallNetwork(prefix string) iaasmock.Option {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.NICs = nil
	catalogue.Networks = []iaasmock.Network{{
		ID: iaasmock.DefaultNetworkID, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
		Name: "small", IPv4Prefix: prefix,
	}}
	return iaasmock.WithCatalogue(catalogue)
}

func TestAddressesAreUniqueAndComeBack(t *testing.T) {
	m := openMock(t, smallNetwork("10.9.0.0/29")) // .2 to .6
	var ids []string
	seen := map[string]bool{}
	for range 5 {
		id := m.create(nil)
		ids = append(ids, id)
		nic, _ := m.nic(m.server(id).NICIDs[0])
		if seen[nic.IPv4] || !strings.HasPrefix(nic.IPv4, "10.9.0.") {
			t.Errorf("address %s", nic.IPv4)
		}
		seen[nic.IPv4] = true
	}

	// As in the cloud, a full network shows only after the request was taken.
	late := m.create(nil)
	m.clock.Step(boot)
	if message := m.wantStatus(late, "ERROR")["errorMessage"].(string); !strings.Contains(message, "Failed to allocate the network(s)") {
		t.Errorf("errorMessage is %q", message)
	}
	m.want(409, "POST", inRegion+"/networks/"+iaasmock.DefaultNetworkID+"/nics", object{})

	m.want(204, "DELETE", inRegion+"/servers/"+ids[2], nil)
	m.clock.Step(remove)
	again := m.create(nil)
	m.clock.Step(boot)
	m.wantStatus(again, "ACTIVE")
}

func TestChosenAddresses(t *testing.T) {
	m := openMock(t)
	nics := inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	chosen := m.want(201, "POST", nics, object{"ipv4": "10.0.7.7"})
	if chosen["ipv4"] != "10.0.7.7" {
		t.Errorf("created as %v", chosen)
	}
	m.want(409, "POST", nics, object{"ipv4": "10.0.7.7"})
	for _, bad := range []string{"10.1.0.5", "10.0.0.0", "10.0.0.1", "10.0.255.255"} {
		m.want(400, "POST", nics, object{"ipv4": bad})
	}
	m.want(400, "POST", nics, object{"ipv6": "fd00:1::7"})
	m.want(204, "DELETE", nics+"/"+chosen["id"].(string), nil)
	m.want(201, "POST", nics, object{"ipv4": "10.0.7.7"})
}
