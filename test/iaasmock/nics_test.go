// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	network  = inRegion + "/networks/" + iaasmock.DefaultNetworkID
	spareNIC = network + "/nics/" + iaasmock.DefaultNICID
)

// smallNetwork has the addresses .2 to .6.
func smallNetwork() iaasmock.Option {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.NICs = nil
	catalogue.Networks = []iaasmock.Network{{
		ID: iaasmock.DefaultNetworkID, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
		Name: "small", IPv4Prefix: "10.9.0.0/29",
	}}
	return iaasmock.WithCatalogue(catalogue)
}

// A client must not take a new server for the one that had its address before.
func TestAReleasedAddressIsUsedAgainAtOnce(t *testing.T) {
	m := openMock(t, smallNetwork())
	create := func() (id, address string) {
		id = m.create(nil)
		nic, _ := m.nic(m.server(id).NICIDs[0])
		return id, nic.IPv4
	}
	first, address := create()
	second, _ := create()
	for _, id := range []string{second, first} {
		if err := m.cloud.RemoveServer(id); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{address, "10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6"} {
		if _, got := create(); got != want {
			t.Errorf("address %s, want %s", got, want)
		}
	}
	// As on STACKIT, the next request succeeds, and the server shows later that the network is full.
	late := m.create(nil)
	m.clock.Step(boot)
	if message := m.wantStatus(late, "ERROR")["errorMessage"].(string); !strings.Contains(
		message, "Failed to allocate the network(s)") {
		t.Errorf("errorMessage is %q", message)
	}
	m.want(409, "POST", network+"/nics", object{})
}

func TestAddressesMayShowAfterTheServerIsActive(t *testing.T) {
	m := openMock(t, iaasmock.WithAddressDelay(boot+time.Minute))
	id := m.create(object{"networking": object{"networkId": iaasmock.DefaultDualStackNetworkID}})
	wantAddresses := func(ipv4, ipv6 any) {
		t.Helper()
		inServer := m.want(200, "GET", inRegion+"/servers/"+id+"?details=true", nil)["nics"].([]any)[0].(object)
		for where, nic := range map[string]object{
			"details": inServer, "its NICs": m.list("/servers/" + id + "/nics")[0].(object),
			"NIC": m.want(200, "GET", inRegion+"/nics/"+m.server(id).NICIDs[0], nil),
		} {
			if nic["ipv4"] != ipv4 || nic["ipv6"] != ipv6 || nic["mac"] == "" {
				t.Errorf("%s show %v", where, nic)
			}
		}
	}
	m.clock.Step(boot + time.Minute - time.Nanosecond)
	m.wantStatus(id, "ACTIVE")
	wantAddresses(nil, nil)
	m.clock.Step(time.Nanosecond)
	wantAddresses("10.1.0.2", "fd00:1::2")
}

func TestNICsComeInRandomOrder(t *testing.T) {
	m := openMock(t, iaasmock.WithSeed(3))
	ids := []string{iaasmock.DefaultNICID}
	for range 4 {
		ids = append(ids, m.want(201, "POST", network+"/nics", object{})["id"].(string))
	}
	server := inRegion + "/servers/" + m.create(object{"networking": object{"nicIds": ids}})
	for _, row := range []struct{ path, field string }{
		{server + "/nics", "items"}, {network + "/nics", "items"}, {inRegion + "/nics", "items"},
		{server + "?details=true", "nics"},
	} {
		seen := map[string]bool{}
		for range 10 {
			order := ""
			for _, nic := range m.want(200, "GET", row.path, nil)[row.field].([]any) {
				order += nic.(object)["mac"].(string)
			}
			seen[order] = true
		}
		if len(seen) < 5 {
			t.Errorf("%s: ten reads have only the orders %v", row.path, seen)
		}
	}
}

func TestOnlyTheNICShowsItsAllowedAddresses(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	allowed := []any{"100.64.0.0/10", "fd00::/64"}
	m.want(200, "PATCH", spareNIC, object{"allowedAddresses": allowed, "labels": object{"a": "1"}})
	nic := m.want(200, "GET", inRegion+"/servers/"+id+"?details=true", nil)["nics"].([]any)[0].(object)
	if nic["nicId"] != iaasmock.DefaultNICID || nic["ipv4"] != "10.0.0.2" || nic["allowedAddresses"] != nil {
		t.Errorf("the server shows its NIC as %v", nic)
	}
	shown := m.list("/servers/" + id + "/nics")[0].(object)
	if !cmp.Equal(shown["allowedAddresses"], allowed) || !cmp.Equal(shown["labels"], object{"a": "1"}) ||
		shown["name"] != "spare" || shown["device"] != id {
		t.Errorf("the NIC is %v", shown)
	}
}

func TestANICWithoutSecurityTakesNoAllowedAddresses(t *testing.T) {
	m := openMock(t)
	allowed := object{"allowedAddresses": []any{"10.0.0.0/8"}}
	m.want(200, "PATCH", spareNIC, object{"nicSecurity": false})
	m.want(409, "PATCH", spareNIC, allowed)
	m.want(200, "PATCH", spareNIC, object{"allowedAddresses": []any{}})
	m.want(200, "PATCH", spareNIC, object{"nicSecurity": true})
	m.want(200, "PATCH", spareNIC, allowed)
	m.want(409, "PATCH", spareNIC, object{"nicSecurity": false, "allowedAddresses": []any{"10.0.0.1"}})
	if nic, _ := m.nic(iaasmock.DefaultNICID); nic.SecurityDisabled {
		t.Errorf("a refused PATCH changed the NIC: %+v", nic)
	}
}
