// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestNICsComeAndGo(t *testing.T) {
	m := openMock(t)
	id, server := m.running(nil)
	first := m.server(id).NICIDs[0]
	spare := server + "/nics/" + iaasmock.DefaultNICID
	m.want(404, "DELETE", spare, nil)
	m.want(404, "PUT", server+"/nics/"+nothing, nil)

	m.want(202, "PUT", spare, nil)
	m.want(409, "PUT", spare, nil)
	if got := m.server(id).NICIDs; !slices.Equal(got, []string{first, iaasmock.DefaultNICID}) {
		t.Errorf("its NICs are %v", got)
	}
	if nic := m.want(200, "GET", inRegion+"/nics/"+iaasmock.DefaultNICID, nil); nic["device"] != id || nic["status"] != "ACTIVE" {
		t.Errorf("the NIC is %v", nic)
	}
	m.want(204, "DELETE", spare, nil)
	m.want(204, "DELETE", server+"/nics/"+first, nil)
	if got := m.server(id).NICIDs; len(got) != 0 {
		t.Errorf("its NICs are %v", got)
	}
	m.want(204, "DELETE", server, nil)
	m.clock.Step(remove)
	if nic, ok := m.nic(first); !ok || nic.ServerID != "" {
		t.Errorf("a NIC taken out is %+v, there: %t", nic, ok)
	}
}

func TestNetworksComeAndGo(t *testing.T) {
	m := openMock(t)
	id, server := m.running(object{"securityGroups": []string{"workers"}})
	first := m.server(id).NICIDs[0]
	dual := server + "/networks/" + iaasmock.DefaultDualStackNetworkID
	m.want(404, "POST", server+"/networks/"+nothing, nil)
	m.want(404, "POST", server+"/networks/"+iaasmock.SecondProjectNetworkID, nil)
	m.want(404, "DELETE", dual, nil)

	m.want(202, "POST", dual, nil)
	m.want(202, "POST", dual, nil)
	ids := m.server(id).NICIDs
	if len(ids) != 3 {
		t.Fatalf("its NICs are %v", ids)
	}
	nic, _ := m.nic(ids[1])
	if nic.IPv4 == "" || nic.IPv6 == "" || !nic.MadeByServer || !slices.Equal(nic.SecurityGroups, []string{iaasmock.DefaultSecurityGroupID}) {
		t.Errorf("made %+v", nic)
	}
	m.want(204, "DELETE", dual, nil)
	if got := m.server(id).NICIDs; !slices.Equal(got, []string{first}) {
		t.Errorf("its NICs are %v", got)
	}
	if _, there := m.nic(ids[1]); there {
		t.Error("the NIC is only detached")
	}
	m.want(202, "POST", dual, nil)
	last := m.server(id).NICIDs[1]
	m.want(204, "DELETE", server, nil)
	m.clock.Step(remove)
	if _, there := m.nic(last); there {
		t.Error("a NIC made for the server outlives it")
	}
}

func TestNICChangesAreRefused(t *testing.T) {
	m := strictMock(t)
	id := m.create(nil)
	server := inRegion + "/servers/" + id
	for _, status := range []string{"CREATING", "DELETING", "DEALLOCATED", "ERROR", "RESCUE"} {
		m.set(id, status)
		m.want(409, "PUT", server+"/nics/"+iaasmock.DefaultNICID, nil)
		m.want(400, "DELETE", server+"/nics/"+m.server(id).NICIDs[0], nil)
		m.want(400, "POST", server+"/networks/"+iaasmock.DefaultNetworkID, nil)
		m.want(400, "DELETE", server+"/networks/"+iaasmock.DefaultNetworkID, nil)
	}
	m.want(404, "PUT", inRegion+"/servers/"+nothing+"/nics/"+iaasmock.DefaultNICID, nil)
}

func TestFullNetworkRefusesANIC(t *testing.T) {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.NICs = nil
	catalogue.Networks = []iaasmock.Network{{
		ID: iaasmock.DefaultNetworkID, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, IPv4Prefix: "10.0.0.0/30",
	}}
	m := openMock(t, iaasmock.WithCatalogue(catalogue))
	_, server := m.running(nil)
	m.want(400, "POST", server+"/networks/"+iaasmock.DefaultNetworkID, nil)
	if got := len(m.cloud.NICs()); got != 1 {
		t.Errorf("%d NICs", got)
	}
}

func TestSecurityGroupsOfAServer(t *testing.T) {
	m := strictMock(t)
	id := m.create(object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	server := inRegion + "/servers/" + id
	path := server + "/security-groups/" + iaasmock.DefaultSecurityGroupID
	answer := m.want(404, "PUT", path, nil)
	if got := answer["msg"].(string); !strings.Contains(got, id+" could not be found as device id on any ports") {
		t.Errorf("while CREATING: %q", got)
	}
	m.clock.Step(boot)
	m.want(404, "DELETE", path, nil)
	m.want(202, "PUT", path, nil)
	if got := m.want(400, "PUT", path, nil)["msg"]; got != "Duplicate items in the list: '"+iaasmock.DefaultSecurityGroupID+"'" {
		t.Errorf("twice: %q", got)
	}
	nic, _ := m.nic(iaasmock.DefaultNICID)
	if want := []string{iaasmock.DefaultSecurityGroupID}; !slices.Equal(nic.SecurityGroups, want) || !slices.Equal(m.server(id).SecurityGroups, want) {
		t.Errorf("the NIC has %v, the server %v", nic.SecurityGroups, m.server(id).SecurityGroups)
	}
	m.want(204, "DELETE", path, nil)
	if nic, _ = m.nic(iaasmock.DefaultNICID); len(nic.SecurityGroups)+len(m.server(id).SecurityGroups) > 0 {
		t.Errorf("the NIC has %v, the server %v", nic.SecurityGroups, m.server(id).SecurityGroups)
	}
	m.want(404, "PUT", server+"/security-groups/"+nothing, nil)
	m.want(204, "DELETE", server, nil)
	m.want(404, "PUT", path, nil)
}

func TestServiceAccountsOfAServer(t *testing.T) {
	m := openMock(t)
	id, server := m.running(nil)
	path := server + "/service-accounts"
	if got := m.list("/servers/" + id + "/service-accounts"); len(got) != 0 {
		t.Errorf("at first %v", got)
	}
	for range 2 {
		if got := m.want(201, "PUT", path+"/node@sa.stackit.cloud", nil)["items"].([]any); len(got) != 1 || got[0] != "node@sa.stackit.cloud" {
			t.Errorf("answered %v", got)
		}
	}
	m.want(409, "PUT", path+"/other@sa.stackit.cloud", nil)
	m.want(404, "DELETE", path+"/other@sa.stackit.cloud", nil)
	if got := m.want(200, "GET", server+"?details=true", nil)["serviceAccountMails"].([]any); len(got) != 1 {
		t.Errorf("the server shows %v", got)
	}
	if got := m.want(200, "DELETE", path+"/node@sa.stackit.cloud", nil)["items"].([]any); len(got) != 0 {
		t.Errorf("answered %v", got)
	}
	m.want(204, "DELETE", server, nil)
	m.want(409, "PUT", path+"/node@sa.stackit.cloud", nil)
	m.want(404, "GET", inRegion+"/servers/"+nothing+"/service-accounts", nil)
}
