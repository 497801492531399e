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

// TestEveryOperation has each operation succeed once; newMock
// checks requests and answers against the API document.
func TestEveryOperation(t *testing.T) {
	m := newMock(t)
	m.login(iaasmock.DefaultProjectID)
	for _, walk := range []func(*mock){
		walkServers, walkNICs, walkVolumes, walkNetworks, walkCatalogue, walkProject,
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
	m.want(200, "GET", path+"/log?length=500", nil)
	m.clock.Step(boot)
	for _, action := range []string{"/stop", "/start"} {
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
	m.want(200, "PATCH", path, object{"name": "b", "description": "c", "labels": object{"a": "b"}})
	m.want(204, "DELETE", path, nil)
	m.list("/volume-performance-classes")
	m.want(200, "GET", inRegion+"/volume-performance-classes/storage_premium_perf1", nil)
}

func walkNetworks(m *mock) {
	path := m.made(202, inRegion+"/networks", object{"name": "a", "labels": object{"a": "b"}, "ipv4": object{"prefixLength": 25}})
	m.want(200, "GET", path, nil)
	nic := m.made(201, path+"/nics", object{"name": "a"})
	m.want(409, "DELETE", path, nil)
	m.want(204, "DELETE", nic, nil)
	m.want(202, "DELETE", path, nil)
	m.want(404, "GET", path, nil)
}

// walkCatalogue reads what nobody makes.
func walkCatalogue(m *mock) {
	for collection, id := range map[string]string{
		"/networks": iaasmock.DefaultNetworkID, "/images": iaasmock.DefaultImageID, "/security-groups": iaasmock.DefaultSecurityGroupID,
		"/affinity-groups": iaasmock.DefaultAffinityGroupID,
	} {
		m.list(collection)
		m.want(200, "GET", inRegion+collection+"/"+id, nil)
	}
	m.want(200, "GET", inRegion+"/snapshots/"+iaasmock.DefaultSnapshotID, nil)
	m.want(200, "GET", "/v2/keypairs?label_selector=a", nil)
	m.want(200, "GET", "/v2/keypairs/"+iaasmock.DefaultKeypairName, nil)
	m.list("/machine-types")
	m.want(200, "GET", inRegion+"/machine-types/"+iaasmock.DefaultMachineType, nil)
	m.want(200, "GET", "/v2/regions/eu01/availability-zones", nil)
}

func walkProject(m *mock) {
	m.want(200, "GET", inRegion+"/quotas", nil)
	m.want(200, "GET", "/v2/projects/"+iaasmock.DefaultProjectID, nil)
	m.want(200, "GET", "/resource-manager/v2/projects/"+iaasmock.DefaultProjectID, nil)
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

func TestProject(t *testing.T) {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.Projects = append(catalogue.Projects, iaasmock.Project{ID: nothing})
	m := openMock(t, iaasmock.WithCatalogue(catalogue))
	got := m.want(200, "GET", "/v2/projects/"+iaasmock.DefaultProjectID, nil)
	if got["id"] != iaasmock.DefaultProjectID || got["areaId"] != "PUBLIC" || got["status"] != "CREATED" {
		t.Errorf("IaaS shows %v", got)
	}
	const manager = "/resource-manager/v2/projects/"
	for path, want := range map[string]struct {
		name    string
		parents int
	}{
		manager + iaasmock.DefaultProjectID + "?includeParents=false": {"default", 0},
		manager + nothing + "?includeParents=true":                    {"project-" + nothing, 1},
	} {
		got := m.want(200, "GET", path, nil)
		parents, _ := got["parents"].([]any)
		if got["name"] != want.name || got["lifecycleState"] != "ACTIVE" || len(parents) != want.parents {
			t.Errorf("the resource manager shows %v", got)
		}
	}
	for _, unknown := range []string{"/v2/projects/", manager} {
		m.want(404, "GET", unknown+"99999999-0000-4000-8000-000000000002", nil)
	}
	if counts := m.cloud.CallCounts(); counts["GetProjectDetails"] != 2 || counts["GetProject"] != 3 {
		t.Errorf("counted %v", counts)
	}
}
