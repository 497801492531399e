// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// newPublicIP makes one and returns its ID and address.
func (m *mock) newPublicIP(body object) (id, ip string) {
	m.t.Helper()
	made := m.want(201, "POST", inRegion+"/public-ips", body)
	return made["id"].(string), made["ip"].(string)
}

// wantAttachedTo checks to which NIC a public IP is attached; "" is none.
func (m *mock) wantAttachedTo(id, nicID string) {
	m.t.Helper()
	got, there := m.want(200, "GET", inRegion+"/public-ips/"+id, nil)["networkInterface"]
	if there != (nicID != "") || there && got != nicID {
		m.t.Errorf("it is attached to %v, want %q", got, nicID)
	}
}

func TestPublicIPs(t *testing.T) {
	m := strictMock(t)
	id, ip := m.newPublicIP(object{"labels": object{"a": "b"}})
	second, secondIP := m.newPublicIP(object{"networkInterface": iaasmock.DefaultNICID})
	if !strings.HasPrefix(ip, "198.18.") || ip == secondIP {
		t.Errorf("the addresses are %s and %s", ip, secondIP)
	}
	if got := m.list("/public-ips"); len(got) != 2 {
		t.Errorf("listed %v", got)
	}
	if got := m.list("/public-ips?label_selector=a%3Db"); len(got) != 1 || got[0].(object)["id"] != id {
		t.Errorf("listed by label %v", got)
	}
	m.wantAttachedTo(id, "")
	m.wantAttachedTo(second, iaasmock.DefaultNICID)

	path := inRegion + "/public-ips/" + id
	m.want(400, "PATCH", path, object{"networkInterface": iaasmock.DefaultNICID})
	m.want(404, "PATCH", path, object{"networkInterface": nothing})
	m.want(200, "PATCH", inRegion+"/public-ips/"+second, object{"networkInterface": nil})
	m.want(200, "PATCH", path, object{"networkInterface": iaasmock.DefaultNICID, "labels": object{"a": nil}})
	m.want(200, "PATCH", path, object{"networkInterface": iaasmock.DefaultNICID})
	m.want(200, "PATCH", path, object{"labels": object{"c": "d"}})
	m.wantAttachedTo(id, iaasmock.DefaultNICID)
	m.wantAttachedTo(second, "")

	m.want(204, "DELETE", path, nil)
	m.want(404, "GET", path, nil)
	if nic, _ := m.nic(iaasmock.DefaultNICID); nic.PublicIP != "" {
		t.Errorf("the NIC still shows %s", nic.PublicIP)
	}
	m.want(204, "DELETE", inRegion+"/networks/"+iaasmock.DefaultNetworkID+"/nics/"+iaasmock.DefaultNICID, nil)
	m.want(404, "POST", inRegion+"/public-ips", object{"networkInterface": iaasmock.DefaultNICID})
	if got := m.cloud.PublicIPs(); len(got) != 1 || got[0].NICID != "" {
		t.Errorf("left are %+v", got)
	}
	if totals := m.cloud.History(); totals.PublicIPsCreated != 2 || totals.PublicIPsDeleted != 1 {
		t.Errorf("history %+v", totals)
	}
}

func TestPublicIPOfAServer(t *testing.T) {
	m := openMock(t)
	ipID, ip := m.newPublicIP(object{})
	id := m.create(nil)
	server := inRegion + "/servers/" + id
	path := server + "/public-ips/" + ipID
	m.want(409, "PUT", path, nil)
	m.clock.Step(boot)
	m.want(404, "DELETE", path, nil)
	m.want(202, "PUT", path, nil)
	m.want(409, "PUT", path, nil)
	details := m.want(200, "GET", server+"?details=true", nil)["nics"].([]any)[0].(object)
	if details["publicIp"] != ip {
		t.Errorf("the server's NIC shows %v", details)
	}
	m.wantAttachedTo(ipID, details["nicId"].(string))
	other, _ := m.newPublicIP(object{})
	m.want(409, "PUT", server+"/public-ips/"+other, nil) // its only NIC has one
	m.want(404, "PUT", server+"/public-ips/"+nothing, nil)

	m.want(204, "DELETE", path, nil)
	m.wantAttachedTo(ipID, "")
	details = m.want(200, "GET", server+"?details=true", nil)["nics"].([]any)[0].(object)
	if got, there := details["publicIp"]; there {
		t.Errorf("the server's NIC still shows %v", got)
	}
}

func TestPublicIPsOutliveServers(t *testing.T) {
	for name, networking := range map[string]object{
		"NIC made for it": {"networkId": iaasmock.DefaultNetworkID},
		"NIC of nicIds":   {"nicIds": []string{iaasmock.DefaultNICID}},
	} {
		t.Run(name, func(t *testing.T) {
			m := openMock(t)
			_, server := m.running(object{"networking": networking})
			ipID, _ := m.newPublicIP(object{})
			m.want(202, "PUT", server+"/public-ips/"+ipID, nil)
			m.want(204, "DELETE", server, nil)
			m.clock.Step(remove)
			m.wantAttachedTo(ipID, "")
			if nic, ok := m.nic(iaasmock.DefaultNICID); !ok || nic.PublicIP != "" {
				t.Errorf("the NIC is %+v", nic)
			}
		})
	}
}

func TestPublicIPsOfTheCatalogue(t *testing.T) {
	catalogue := iaasmock.DefaultCatalogue()
	const fixed = "a0000000-0000-4000-8000-000000000001"
	catalogue.PublicIPs = []iaasmock.PublicIP{
		{ID: fixed, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, IP: "198.18.0.77", NICID: iaasmock.DefaultNICID},
		{ID: "a0000000-0000-4000-8000-000000000002", ProjectID: iaasmock.SecondProjectID, Region: iaasmock.DefaultRegion},
	}
	m := openMock(t, iaasmock.WithCatalogue(catalogue))
	if got := m.list("/public-ips"); len(got) != 1 || got[0].(object)["ip"] != "198.18.0.77" {
		t.Errorf("listed %v", got)
	}
	m.wantAttachedTo(fixed, iaasmock.DefaultNICID)
	if nic, _ := m.nic(iaasmock.DefaultNICID); nic.PublicIP != "198.18.0.77" {
		t.Errorf("the NIC shows %s", nic.PublicIP)
	}
	m.want(404, "GET", inRegion+"/public-ips/"+catalogue.PublicIPs[1].ID, nil)
	for name, broken := range map[string]iaasmock.PublicIP{"no such NIC": {ID: fixed, NICID: nothing}, "foreign address": {ID: fixed, IP: "192.0.2.1"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was made", name)
				}
			}()
			catalogue.PublicIPs = []iaasmock.PublicIP{broken}
			iaasmock.New(iaasmock.WithCatalogue(catalogue))
		}()
	}
}
