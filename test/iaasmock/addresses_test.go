// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"
	"time"

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

	// As on STACKIT, the request succeeds, and the server shows later that the network is
	// full.
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
	m.want(204, "DELETE", nics+"/"+chosen["id"].(string), nil)
	m.want(201, "POST", nics, object{"ipv4": "10.0.7.7"})
}

// A client must not take a new server for the one that had its address before.
func TestAnAddressIsNotUsedAgainAtOnce(t *testing.T) {
	m := openMock(t, smallNetwork("10.9.0.0/29")) // .2 to .6
	for _, want := range []string{"10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6", "10.9.0.2"} {
		id := m.create(nil)
		if nic, _ := m.nic(m.server(id).NICIDs[0]); nic.IPv4 != want {
			t.Errorf("address %s, want %s", nic.IPv4, want)
		}
		if err := m.cloud.RemoveServer(id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAddressDelay(t *testing.T) {
	const lag = time.Second
	m := openMock(t, iaasmock.WithAddressDelay(boot+time.Minute), iaasmock.WithListLag(lag))
	id := m.create(object{"networking": object{"networkId": iaasmock.DefaultDualStackNetworkID}})
	owner := inRegion + "/servers/" + id
	nicID := m.server(id).NICIDs[0]
	wantAddresses := func(ipv4, ipv6 any) {
		t.Helper()
		inServer := m.want(200, "GET", owner+"?details=true", nil)["nics"].([]any)[0].(object)
		for where, nic := range map[string]object{
			"details": inServer, "its NICs": m.list("/servers/" + id + "/nics")[0].(object),
			"NIC": m.want(200, "GET", inRegion+"/nics/"+nicID, nil),
		} {
			if nic["ipv4"] != ipv4 || nic["ipv6"] != ipv6 || nic["mac"] == "" {
				t.Errorf("%s show %v", where, nic)
			}
		}
		seen, _ := m.nic(nicID)
		if want, _ := ipv4.(string); seen.IPv4 != want {
			t.Errorf("NICs shows %+v", seen)
		}
	}
	m.clock.Step(boot + time.Minute - time.Nanosecond)
	m.wantStatus(id, "ACTIVE")
	wantAddresses(nil, nil)
	m.clock.Step(time.Nanosecond)
	wantAddresses("10.1.0.2", "fd00:1::2")
	listed := func() any {
		return m.list("/servers?details=true")[0].(object)["nics"].([]any)[0].(object)["ipv4"]
	}
	if got := listed(); got != nil {
		t.Errorf("a list that lags shows %v at once", got)
	}
	m.clock.Step(lag)
	if got := listed(); got != "10.1.0.2" {
		t.Errorf("a list that lags shows %v in the end", got)
	}
}

func TestAddressDelayIsForNewNICsOnly(t *testing.T) {
	m := openMock(t, iaasmock.WithAddressDelay(time.Minute))
	m.create(object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	if nic, _ := m.nic(iaasmock.DefaultNICID); nic.IPv4 != "10.0.0.2" {
		t.Errorf("the NIC of nicIds is %+v", nic)
	}

	// Addresses that are still hidden are released, too.
	full := openMock(t, smallNetwork("10.9.0.0/30"), iaasmock.WithAddressDelay(time.Minute)) // .2
	if err := full.cloud.RemoveServer(full.create(nil)); err != nil {
		t.Fatal(err)
	}
	id := full.create(nil)
	full.clock.Step(time.Minute)
	if nic, _ := full.nic(full.server(id).NICIDs[0]); nic.IPv4 != "10.9.0.2" {
		t.Errorf("the next NIC is %+v", nic)
	}
}
