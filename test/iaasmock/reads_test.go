// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestLabelSelector(t *testing.T) {
	m := openMock(t)
	m.create(object{"name": "a", "labels": object{"kubernetes.io/machine": "a", "kubernetes.io/cluster": "one", "x": ""}})
	m.create(object{"name": "b", "labels": object{"kubernetes.io/machine": "b", "kubernetes.io/cluster": "one"}})
	m.create(object{"name": "c", "labels": object{"kubernetes.io/machine": "c", "kubernetes.io/cluster": "two"}})
	for _, row := range []struct {
		selector string
		want     []string
	}{
		{"", []string{"a", "b", "c"}},
		{"kubernetes.io/machine=b", []string{"b"}},
		{"kubernetes.io/cluster=one,kubernetes.io/machine=a", []string{"a"}},
		{"kubernetes.io/cluster=two,kubernetes.io/machine=a", []string{}},
		{"x", []string{"a"}},
		{"!x", []string{"b", "c"}},
		{"kubernetes.io/cluster!=one", []string{"c"}},
		{"kubernetes.io/machine in (a,c)", []string{"a", "c"}},
	} {
		got := names(m.list("/servers?label_selector=" + url.QueryEscape(row.selector)))
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", row.selector, diff)
		}
	}
	for _, broken := range []string{"a=b,", "a in b", "=b"} {
		for _, path := range []string{"/servers", "/nics", "/volumes", "/networks", "/images", "/security-groups"} {
			m.want(400, "GET", inRegion+path+"?label_selector="+url.QueryEscape(broken), nil)
		}
	}
}

func TestEmptyListsAreNotNull(t *testing.T) {
	m := openMock(t, iaasmock.WithCatalogue(iaasmock.Catalogue{
		Projects: []iaasmock.Project{{ID: iaasmock.DefaultProjectID}}, Regions: map[string][]string{iaasmock.DefaultRegion: nil},
	}))
	for _, path := range []string{
		inRegion + "/servers", inRegion + "/nics", inRegion + "/volumes", inRegion + "/networks", inRegion + "/images",
		inRegion + "/machine-types", inRegion + "/security-groups", inRegion + "/affinity-groups", "/v2/keypairs",
		"/v2/regions/" + iaasmock.DefaultRegion + "/availability-zones",
	} {
		_, raw, err := m.try("GET", path, nil)
		if err != nil || string(raw) != `{"items":[]}`+"\n" {
			t.Errorf("%s: %s %v", path, raw, err)
		}
	}
}

func TestDetails(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"userData": "YQ==", "networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	m.create(object{"name": "server2"})
	nicPath := inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + iaasmock.DefaultNICID
	m.want(200, "PATCH", nicPath, object{"allowedAddresses": []string{"100.64.0.0/10"}})

	for _, server := range append(m.list("/servers"), m.wantStatus(id, "CREATING")) {
		for _, key := range []string{"nics", "userData", "serviceAccountMails", "networking", "securityGroups"} {
			if value, there := server.(object)[key]; there {
				t.Errorf("without details there is %s: %v", key, value)
			}
		}
	}
	detailed := m.list("/servers?details=true")
	first, second := detailed[0].(object), detailed[1].(object)
	if first["userData"] != "YQ==" || second["userData"] != nil {
		t.Errorf("userData is %v and %v", first["userData"], second["userData"])
	}
	if _, there := second["userData"]; !there {
		t.Error("userData is left out, not null")
	}
	if _, there := first["networking"]; there {
		t.Error("networking in a response breaks clients")
	}
	nic := first["nics"].([]any)[0].(object)
	if nic["nicId"] != iaasmock.DefaultNICID || nic["ipv4"] != "10.0.0.2" || nic["networkName"] != "default" {
		t.Errorf("its NIC is shown as %v", nic)
	}
	if _, there := nic["allowedAddresses"]; there {
		t.Error("details show allowedAddresses")
	}
	if got := m.want(200, "GET", nicPath, nil)["allowedAddresses"]; !cmp.Equal(got, []any{"100.64.0.0/10"}) {
		t.Errorf("the NIC resource has allowedAddresses %v", got)
	}
}

func TestListLag(t *testing.T) {
	const lag = 3 * time.Second
	m := openMock(t, iaasmock.WithListLag(lag))
	id := m.create(nil)
	m.wantStatus(id, "CREATING")
	if got := m.list("/servers"); len(got) > 0 {
		t.Errorf("the new server is listed at once: %v", got)
	}
	m.clock.Step(lag)
	if got := m.list("/servers"); len(got) != 1 {
		t.Errorf("it is not listed after the lag: %v", got)
	}

	m.clock.Step(boot)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove)
	m.wantStatus(id, "")
	listed := m.list("/servers?details=true")
	if len(listed) != 1 || listed[0].(object)["status"] != "DELETING" || len(listed[0].(object)["nics"].([]any)) != 1 {
		t.Errorf("just gone, it is listed as %v", listed)
	}
	if got := len(m.cloud.Servers()); got != 0 {
		t.Errorf("Servers shows %d", got)
	}
	m.clock.Step(lag)
	if got := m.list("/servers"); len(got) > 0 {
		t.Errorf("it is still listed: %v", got)
	}
}

func TestProjectsAndRegionsAreApart(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	for _, elsewhere := range []string{
		"/v2/projects/" + iaasmock.SecondProjectID + "/regions/eu01", "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/eu02",
	} {
		for _, path := range []string{
			"/servers/" + id, "/servers/" + id + "/nics", "/networks/" + iaasmock.DefaultNetworkID,
			"/networks/" + iaasmock.DefaultNetworkID + "/nics", "/nics/" + iaasmock.DefaultNICID,
			"/volumes/" + iaasmock.DefaultVolumeID, "/security-groups/" + iaasmock.DefaultSecurityGroupID,
			"/affinity-groups/" + iaasmock.DefaultAffinityGroupID,
		} {
			m.want(404, "GET", elsewhere+path, nil)
		}
		m.want(404, "DELETE", elsewhere+"/servers/"+id, nil)
		if got := m.want(200, "GET", elsewhere+"/servers", nil)["items"]; len(got.([]any)) > 0 {
			t.Errorf("%s lists %v", elsewhere, got)
		}
	}
	nowhere := "/v2/projects/99999999-0000-4000-8000-000000000001/regions/eu01/servers"
	if answer := m.want(404, "GET", nowhere, nil); answer["msg"] != "project not found" {
		t.Errorf("unknown project: %v", answer)
	}
	m.want(404, "GET", "/v2/projects/"+iaasmock.DefaultProjectID+"/regions/eu09/servers", nil)
}

func TestReplacedLabels(t *testing.T) {
	m := openMock(t, iaasmock.WithReplacedLabels())
	id := m.create(object{"labels": object{"a": "1", "b": "2"}})
	m.want(200, "PATCH", inRegion+"/servers/"+id, object{"name": "renamed"})
	if got := m.server(id).Labels; !cmp.Equal(got, map[string]string{"a": "1", "b": "2"}) {
		t.Errorf("a PATCH without labels left %v", got)
	}
	m.want(200, "PATCH", inRegion+"/servers/"+id, object{"labels": object{"c": "3"}})
	if got := m.server(id).Labels; !cmp.Equal(got, map[string]string{"c": "3"}) {
		t.Errorf("the labels are %v", got)
	}
}

func TestUpdates(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"labels": object{"a": "1", "b": "2"}})
	m.clock.Step(boot + time.Second)
	m.want(200, "PATCH", inRegion+"/servers/"+id, object{"name": "renamed", "labels": object{"a": nil, "c": "3"}, "metadata": object{"m": "1"}})
	server := m.server(id)
	if server.Name != "renamed" || !cmp.Equal(server.Labels, map[string]string{"b": "2", "c": "3"}) ||
		server.Metadata["m"] != "1" || !server.UpdatedAt.Equal(m.clock.Now()) {
		t.Errorf("updated to %+v", server)
	}
	m.want(400, "PATCH", inRegion+"/servers/"+id, object{"name": "other", "labels": object{"stackit-a": "1"}})
	if got := m.server(id).Name; got != "renamed" {
		t.Errorf("a refused update changed the name to %s", got)
	}

	nic := m.server(id).NICIDs[0]
	path := inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + nic
	m.want(200, "PATCH", path, object{"allowedAddresses": []string{"10.96.0.0/12", "fd00::/64"}, "labels": object{"l": "v"}})
	m.want(200, "PATCH", path, object{"allowedAddresses": []string{"10.100.0.0/16"}, "name": "port"})
	m.want(404, "PATCH", inRegion+"/networks/"+iaasmock.DefaultDualStackNetworkID+"/nics/"+nic, object{})
	got, _ := m.nic(nic)
	if !cmp.Equal(got.AllowedAddresses, []string{"10.100.0.0/16"}) || got.Name != "port" || got.Labels["l"] != "v" {
		t.Errorf("the NIC is %+v", got)
	}
}

func TestNullLists(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithNullLists(), iaasmock.WithoutAuthentication())
	for path, want := range map[string]string{
		"/servers": `{"items":null}`, "/nics?label_selector=none": `{"items":null}`, "/networks": `{"items":[{`,
	} {
		if got := call(t, cloud, http.MethodGet, path, "").Body.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	cloud.Inject(iaasmock.Fault{Operation: "ListNetworks", EmptyList: true})
	if got := call(t, cloud, http.MethodGet, "/networks", "").Body.String(); got != `{"items":null}`+"\n" {
		t.Errorf("empty by mistake it is %s", got)
	}
}

func TestListsAreCutOff(t *testing.T) {
	m := openMock(t)
	m.create(nil)
	m.create(nil)
	for limit, want := range map[int]int{1: 1, 2: 2, 3: 2} {
		remove := m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: limit})
		if listed := m.list("/servers"); len(listed) != want {
			t.Errorf("%d servers are listed with a limit of %d", len(listed), limit)
		}
		remove()
	}
}

func TestVolumeChanges(t *testing.T) {
	m := openMock(t)
	path := inRegion + "/volumes/" + iaasmock.DefaultVolumeID
	changed := m.want(200, "PATCH", path, object{
		"name": "renamed", "description": "text", "bootable": true, "labels": object{"a": "b"},
	})
	for field, want := range (object{
		"name": "renamed", "description": "text", "bootable": true, "labels": object{"a": "b"},
	}) {
		if !cmp.Equal(changed[field], want) {
			t.Errorf("%s is %v", field, changed[field])
		}
	}
	m.want(200, "PATCH", path, object{"labels": object{"a": nil}})
	if got := m.want(200, "GET", path, nil); got["name"] != "renamed" || len(got["labels"].(object)) > 0 {
		t.Errorf("later it is %v", got)
	}
	m.want(404, "PATCH", inRegion+"/volumes/"+nothing, object{})
	m.want(400, "PATCH", path, object{"labels": object{"stackit-x": "a"}})
}
