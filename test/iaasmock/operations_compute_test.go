// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func walkServerChanges(m *mock) {
	path := inRegion + "/servers/" + m.create(nil)
	m.clock.Step(boot)
	for _, change := range []struct {
		action string
		body   any
	}{
		{"/stop", nil}, {"/rescue", object{"image": iaasmock.DefaultImageID}}, {"/unrescue", nil}, {"/resize", object{"machineType": "g2i.4"}},
	} {
		m.want(202, "POST", path+change.action, change.body)
		m.want(200, "GET", path, nil)
		m.clock.Step(boot)
	}
	m.want(200, "GET", path+"/console", nil)
	m.want(200, "GET", path+"/log?length=5", nil)
	walkMembers(m, path)
}

// walkMembers attaches everything to a server and detaches it.
func walkMembers(m *mock, path string) {
	volume := path + "/volume-attachments/" + iaasmock.DefaultVolumeID
	m.want(202, "PUT", volume, object{"deleteOnTermination": false})
	m.want(200, "PATCH", volume, object{"deleteOnTermination": true})
	m.want(200, "GET", volume, nil)
	m.want(200, "GET", path+"/volume-attachments", nil)
	m.want(204, "DELETE", volume, nil)

	nic := path + "/nics/" + iaasmock.DefaultNICID
	m.want(202, "PUT", nic, nil)
	m.want(200, "GET", path+"?details=true", nil)
	m.want(204, "DELETE", nic, nil)
	network := path + "/networks/" + iaasmock.DefaultDualStackNetworkID
	m.want(202, "POST", network, nil)
	m.want(204, "DELETE", network, nil)
	group := path + "/security-groups/" + iaasmock.DefaultSecurityGroupID
	m.want(202, "PUT", group, nil)
	m.want(204, "DELETE", group, nil)

	account := path + "/service-accounts/a@sa.stackit.cloud"
	m.want(201, "PUT", account, nil)
	m.want(200, "GET", path+"/service-accounts", nil)
	m.want(200, "DELETE", account, nil)

	ips := inRegion + "/public-ips"
	ip := m.made(201, ips, object{"labels": object{"a": "b"}})
	id := ip[len(ips):]
	m.want(202, "PUT", path+"/public-ips"+id, nil)
	m.want(200, "GET", path+"?details=true", nil)
	m.want(200, "GET", ip, nil)
	m.want(204, "DELETE", path+"/public-ips"+id, nil)
	m.want(200, "PATCH", ip, object{"networkInterface": iaasmock.DefaultNICID})
	m.want(200, "PATCH", ip, object{"networkInterface": nil})
	m.list("/public-ips?label_selector=a")
	m.want(204, "DELETE", ip, nil)
}

func walkVolumeChanges(m *mock) {
	volume := inRegion + "/volumes/" + iaasmock.DefaultVolumeID
	m.want(200, "PATCH", volume, object{"name": "a", "description": "b", "labels": object{"a": "b"}, "bootable": true})
	m.want(202, "POST", volume+"/resize", object{"size": 30})
	m.want(200, "GET", volume, nil)
	m.list("/volume-performance-classes")
	m.want(200, "GET", inRegion+"/volume-performance-classes/storage_premium_perf1", nil)
}

func walkProject(m *mock) {
	m.want(200, "GET", inRegion+"/quotas", nil)
	m.want(200, "GET", "/v2/networks/public-ip-ranges", nil)
	m.want(200, "GET", "/v2/projects/"+iaasmock.DefaultProjectID, nil)
	m.want(200, "GET", "/resource-manager/v2/projects/"+iaasmock.DefaultProjectID, nil)
	response, _, err := m.try("POST", inRegion+"/servers", serverBody(nil))
	if err != nil {
		m.t.Fatal(err)
	}
	m.want(200, "GET", inRegion+"/requests/"+response.Header.Get("X-Request-Id"), nil)
}
