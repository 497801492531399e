// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// TestEveryOperation has each operation succeed once. If IAAS_OPENAPI names the API
// document, newMock checks requests and answers against it.
func TestEveryOperation(t *testing.T) {
	m := newMock(t)
	m.login(iaasmock.DefaultProjectID)
	for _, walk := range []func(*mock){
		walkServers, walkNICs, walkVolumes, walkNetworks, walkSecurityGroups, walkImages, walkAffinityGroups, walkSnapshots, walkKeypairs, walkTypes,
		walkServerChanges, walkVolumeChanges, walkProject,
	} {
		walk(m)
	}
	succeeded := map[string]bool{}
	for _, call := range m.cloud.Calls() {
		succeeded[call.Operation] = succeeded[call.Operation] || call.Status/100 == 2
	}
	for _, operation := range iaasmock.Operations() {
		if !succeeded[operation] {
			t.Errorf("%s has not succeeded", operation)
		}
	}
}

// made is want for a resource that is made; it returns its path.
func (m *mock) made(status int, collection string, body object) string {
	m.t.Helper()
	return collection + "/" + m.want(status, "POST", collection, body)["id"].(string)
}

func walkServers(m *mock) {
	path := m.made(201, inRegion+"/servers", bodies[0].body)
	m.want(200, "GET", inRegion+"/servers?details=true&label_selector=a%3Db", nil)
	m.want(200, "GET", path+"?details=true", nil)
	m.want(200, "PATCH", path, object{"name": "b", "labels": object{"a": nil}, "metadata": object{"c": "d"}})
	m.want(200, "GET", path+"/nics", nil)
	m.want(200, "GET", path+"/volume-attachments", nil)
	m.clock.Step(boot)
	for _, action := range []string{"/stop", "/start", "/reboot?action=hard", "/deallocate"} {
		m.want(202, "POST", path+action, nil)
		m.want(200, "GET", path, nil)
		m.clock.Step(remove)
	}
	m.want(204, "DELETE", path, nil)
	m.want(200, "GET", path, nil)
}

func walkNICs(m *mock) {
	network := inRegion + "/networks/" + iaasmock.DefaultDualStackNetworkID
	path := m.made(201, network+"/nics", object{"name": "a", "allowedAddresses": []any{"10.0.0.0/8", "fd00::/64"}, "labels": object{"a": "b"}})
	m.want(200, "GET", network+"/nics?label_selector=a", nil)
	m.want(200, "GET", path, nil)
	m.want(200, "PATCH", path, object{"nicSecurity": false, "description": "b"})
	id := path[len(network+"/nics/"):]
	m.want(200, "GET", inRegion+"/nics?label_selector=a", nil)
	m.want(200, "GET", inRegion+"/nics/"+id, nil)
	m.want(204, "DELETE", path, nil)
}

func walkVolumes(m *mock) {
	path := m.made(201, inRegion+"/volumes", object{
		"availabilityZone": "eu01-1", "name": "a", "size": 20, "source": object{"type": "image", "id": iaasmock.DefaultImageID},
	})
	m.list("/volumes?label_selector=a")
	m.want(200, "GET", path, nil)
	m.want(204, "DELETE", path, nil)
}

func walkNetworks(m *mock) {
	for _, family := range []object{
		{"ipv4": object{"prefix": "10.77.0.0/24", "nameservers": []any{"1.1.1.1"}}}, {"ipv4": object{"prefixLength": 24}},
		{"ipv6": object{"prefix": "fd00:77::/64", "nameservers": []any{"2001:db8::1"}}}, {"ipv6": object{"prefixLength": 64}},
	} {
		family["name"] = "a"
		path := m.made(202, inRegion+"/networks", family)
		m.want(200, "GET", path, nil)
		m.want(202, "PATCH", path, object{"labels": object{"a": "b"}, "ipv4": object{"gateway": nil}, "ipv6": object{"gateway": nil}})
		m.want(200, "GET", path, nil)
		m.list("/networks?label_selector=a")
		m.want(202, "DELETE", path, nil)
	}
}

func walkSecurityGroups(m *mock) {
	path := m.made(201, inRegion+"/security-groups", object{"name": "a", "stateful": false})
	for _, row := range bodies {
		if row.path == "/security-groups/"+iaasmock.DefaultSecurityGroupID+"/rules" {
			rule := m.made(201, path+"/rules", row.body)
			m.want(200, "GET", rule, nil)
			m.want(200, "GET", path+"/rules", nil)
			m.want(200, "GET", path, nil)
			m.want(204, "DELETE", rule, nil)
		}
	}
	m.want(200, "PATCH", path, object{"description": "b", "labels": object{"a": "b"}})
	m.list("/security-groups?label_selector=a")
	m.want(204, "DELETE", path, nil)
}

func walkImages(m *mock) {
	path := m.made(201, inRegion+"/images", object{"name": "a", "diskFormat": "raw"})
	m.want(200, "PATCH", path, object{
		"labels": object{"a": "b"}, "agent": object{"supported": true}, "config": object{"uefi": true, "cdromBus": nil},
	})
	m.want(200, "GET", path, nil)
	m.list("/images?all=true&label_selector=a")
	m.want(204, "DELETE", path, nil)
}

func walkAffinityGroups(m *mock) {
	path := m.made(201, inRegion+"/affinity-groups", object{"name": "a", "policy": "soft-affinity"})
	m.want(200, "GET", path, nil)
	m.list("/affinity-groups")
	m.want(204, "DELETE", path, nil)
}

func walkSnapshots(m *mock) {
	path := m.made(201, inRegion+"/snapshots", object{"volumeId": iaasmock.DefaultVolumeID, "name": "a", "labels": object{"a": "b"}})
	m.want(200, "PATCH", path, object{"name": "b", "description": "text", "labels": object{"a": nil, "c": "d"}})
	snapshot := m.want(200, "GET", path, nil)
	m.list("/snapshots?label_selector=c")
	m.want(201, "POST", inRegion+"/servers", serverBody(object{"bootVolume": object{"size": 20, "source": object{"type": "snapshot", "id": snapshot["id"]}}}))
	m.want(204, "DELETE", path, nil)
	m.want(404, "GET", path, nil)
}

func walkKeypairs(m *mock) {
	m.want(201, "POST", "/v2/keypairs", object{"name": "a@b", "publicKey": sshKey})
	m.want(200, "PATCH", "/v2/keypairs/a@b", object{"labels": object{"a": "b"}})
	m.want(200, "GET", "/v2/keypairs/a@b", nil)
	m.want(200, "GET", "/v2/keypairs?label_selector=a", nil)
	m.want(204, "DELETE", "/v2/keypairs/a@b", nil)
}

func walkTypes(m *mock) {
	m.list("/machine-types?filter=vcpus%3E2")
	m.want(200, "GET", inRegion+"/machine-types/"+iaasmock.DefaultMachineType, nil)
	m.want(200, "GET", "/v2/regions/eu01/availability-zones", nil)
}

// Package fault cannot import the routes, but lists their operations.
func TestFaultsMayNameEveryOperation(t *testing.T) {
	routed := iaasmock.Operations()
	routed = slices.DeleteFunc(routed, func(operation string) bool { return operation == fault.OperationToken })
	slices.Sort(routed)
	if diff := cmp.Diff(slices.Compact(routed), fault.Operations); diff != "" {
		t.Errorf("fault.Operations (-routes +list):\n%s", diff)
	}
}
