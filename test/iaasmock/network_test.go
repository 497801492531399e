// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const networks = inRegion + "/networks"

func TestNetworksAreMadeAndUsed(t *testing.T) {
	m := openMock(t)
	path := m.made(202, networks, object{"name": "mine", "ipv4": object{"prefix": "10.77.0.0/28", "gateway": "10.77.0.4"}})
	network := m.want(200, "GET", path, nil)
	want := object{"prefixes": []any{"10.77.0.0/28"}, "gateway": "10.77.0.4", "nameservers": []any{}}
	if diff := cmp.Diff(want, network["ipv4"]); diff != "" || network["ipv6"] != nil {
		t.Errorf("ipv4 (-want +got):\n%s\nipv6 %v", diff, network["ipv6"])
	}
	if !cmp.Equal([]any{network["status"], network["routed"], network["dhcp"]}, []any{"CREATED", true, true}) {
		t.Errorf("made as %v", network)
	}
	if got := names(m.list("/networks")); !cmp.Equal(got, []string{"default", "dual-stack", "mine"}) {
		t.Errorf("listed %v", got)
	}
	id := m.create(object{"networking": object{"networkId": network["id"]}})
	nic, _ := m.nic(m.server(id).NICIDs[0])
	if nic.IPv4 != "10.77.0.2" {
		t.Errorf("the first server has %s", nic.IPv4)
	}
	for _, taken := range []string{"10.77.0.4", nic.IPv4} { // the gateway, the server
		m.want(409, "POST", path+"/nics", object{"ipv4": taken})
	}

	m.want(409, "DELETE", path, nil)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.want(409, "DELETE", path, nil) // its NIC is there until it is gone
	m.clock.Step(remove)
	m.want(202, "DELETE", path, nil)
	m.want(404, "GET", path, nil)
	m.want(404, "DELETE", path, nil)
}

func TestNetworksOfALength(t *testing.T) {
	m := openMock(t)
	prefixesOf := func(body object) [2]any {
		t.Helper()
		var found [2]any
		network := m.want(202, "POST", networks, body)
		for i, family := range []string{"ipv4", "ipv6"} {
			if shown, ok := network[family].(object); ok {
				found[i] = shown["prefixes"].([]any)[0]
			}
		}
		return found
	}
	m.want(202, "POST", networks, object{"name": "a", "ipv4": object{"prefix": "10.128.1.7/24"}})
	for _, row := range []struct {
		name   string
		body   object
		v4, v6 any
	}{
		{"nothing asked for", object{"name": "a"}, "10.128.0.0/25", nil},
		{"the next", object{"name": "a"}, "10.128.0.128/25", nil},
		{"past one that is taken", object{"name": "a", "ipv4": object{"prefixLength": 24}}, "10.128.2.0/24", nil},
		{"larger than all gaps", object{"name": "a", "ipv4": object{"prefixLength": 16}}, "10.129.0.0/16", nil},
		{"into a gap", object{"name": "a", "ipv4": object{"prefixLength": 29}}, "10.128.3.0/29", nil},
		{"IPv6 alone", object{"name": "a", "ipv6": object{"prefixLength": 56}}, nil, "fd80::/56"},
		{"both", object{"name": "a", "ipv4": object{"prefixLength": 28}, "ipv6": object{"prefixLength": 64}}, "10.128.3.16/28", "fd80:0:0:100::/64"},
	} {
		if got := prefixesOf(row.body); got != [2]any{row.v4, row.v6} {
			t.Errorf("%s: %v, want %v %v", row.name, got, row.v4, row.v6)
		}
	}
	m.want(409, "POST", networks, object{"name": "a", "ipv4": object{"prefixLength": 8}})
	m.want(409, "POST", networks, object{"name": "a", "ipv4": object{"prefix": "10.0.128.0/17"}}) // in the default network
	elsewhere := "/v2/projects/" + iaasmock.SecondProjectID + "/regions/eu01/networks"
	m.want(202, "POST", elsewhere, object{"name": "a", "ipv4": object{"prefix": "10.0.128.0/17"}})
}

func TestNetworkUpdates(t *testing.T) {
	m := strictMock(t)
	path := networks + "/" + iaasmock.DefaultDualStackNetworkID
	m.clock.Step(time.Minute)
	m.want(202, "PATCH", path, object{
		"name": "renamed", "dhcp": false, "routed": false, "labels": object{"a": "b"},
		"ipv4": object{"gateway": nil, "nameservers": []any{"1.1.1.1"}}, "ipv6": object{"gateway": "fd00:1::9"},
	})
	got := m.want(200, "GET", path, nil)
	if !cmp.Equal([]any{got["name"], got["dhcp"], got["routed"]}, []any{"renamed", false, false}) || got["createdAt"] == got["updatedAt"] {
		t.Errorf("updated to %v", got)
	}
	v4, v6 := got["ipv4"].(object), got["ipv6"].(object)
	if v4["gateway"] != nil || !cmp.Equal(v4["nameservers"], []any{"1.1.1.1"}) || v6["gateway"] != "fd00:1::9" {
		t.Errorf("families are %v and %v", v4, v6)
	}
	m.want(202, "PATCH", path, object{"labels": object{"c": "d"}})
	if network := m.cloud.Networks()[1]; network.Name != "renamed" || !network.Isolated || !network.DHCPDisabled || network.IPv4Nameservers[0] != "1.1.1.1" {
		t.Errorf("the network is %+v", network)
	}
	if diff := cmp.Diff(object{"a": "b", "c": "d"}, m.want(200, "GET", path, nil)["labels"]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	before := m.want(200, "GET", path, nil)
	nic := m.want(201, "POST", path+"/nics", object{})
	for name, refused := range map[string]object{
		"a gateway elsewhere": {"name": "x", "ipv4": object{"gateway": "10.99.0.1"}},
		"a NIC's address":     {"name": "x", "ipv4": object{"gateway": nic["ipv4"]}},
		"a reserved label":    {"name": "x", "labels": object{"stackit-a": "b"}},
	} {
		if answer := m.want(400, "PATCH", path, refused); answer["msg"] == "" {
			t.Errorf("%s: %v", name, answer)
		}
	}
	m.want(404, "PATCH", path, object{"name": "x", "routingTableId": iaasmock.DefaultNICID})
	m.want(404, "PATCH", networks+"/"+iaasmock.SecondProjectNetworkID, object{})
	if diff := cmp.Diff(before, m.want(200, "GET", path, nil)); diff != "" {
		t.Errorf("refused updates changed (-want +got):\n%s", diff)
	}
}

func TestNetworksTakeTime(t *testing.T) {
	m := strictMock(t, iaasmock.WithNetworkDuration(time.Second))
	path := m.made(202, networks, object{"name": "a"})
	status := func(want string) {
		t.Helper()
		if got := m.want(200, "GET", path, nil)["status"]; got != want {
			t.Errorf("it is %v, want %s", got, want)
		}
	}
	status("CREATING")
	m.clock.Step(time.Second)
	status("CREATED")
	m.want(202, "PATCH", path, object{"name": "b"})
	status("UPDATING")
	m.clock.Step(time.Second)
	status("CREATED")
	m.want(202, "DELETE", path, nil)
	status("DELETING")
	m.clock.Step(time.Second / 2)
	m.want(202, "DELETE", path, nil) // changes nothing
	m.want(409, "POST", path+"/nics", object{})
	m.want(409, "POST", inRegion+"/servers", serverBody(object{"networking": object{"networkId": path[len(networks)+1:]}}))
	m.clock.Step(time.Second / 2)
	m.want(404, "GET", path, nil)
}
