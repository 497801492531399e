// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// TestEveryOperation has each operation succeed once; newMock checks requests and answers against
// the API document.
func TestEveryOperation(t *testing.T) {
	m := newMock(t)
	m.login(iaasmock.DefaultProjectID)
	server := m.made("/servers", serverBody(object{"labels": object{"a": "b"}}))
	nic := m.made("/networks/"+iaasmock.DefaultDualStackNetworkID+"/nics", object{"name": "a", "ipv6": "fd00:1::77"})
	volume := m.made("/volumes", object{"availabilityZone": "eu01-1", "size": 20})
	for _, path := range []string{
		"/servers?label_selector=a%3Db&details=true", server + "?details=true", server + "/nics", server + "/log?length=9",
		"/nics", "/nics/" + iaasmock.DefaultNICID, "/networks/" + iaasmock.DefaultNetworkID,
		"/networks/" + iaasmock.DefaultNetworkID + "/nics", "/volumes", volume, "/quotas", "/machine-types",
		"/images/" + iaasmock.DefaultImageID,
	} {
		m.want(200, "GET", inRegion+path, nil)
	}
	m.want(200, "GET", "/v2/keypairs/"+iaasmock.DefaultKeypairName, nil)
	zones := m.want(200, "GET", "/v2/regions/eu02/availability-zones", nil)["items"]
	if diff := cmp.Diff([]any{"eu02-1", "eu02-2", "eu02-3", "eu02-m"}, zones); diff != "" {
		m.t.Errorf("zones (-want +got):\n%s", diff)
	}
	m.want(200, "PATCH", inRegion+server, object{"name": "b", "metadata": object{"c": "d"}})
	m.want(200, "PATCH", inRegion+nic, object{"description": "b"})
	for _, path := range []string{server, nic, volume} {
		m.want(204, "DELETE", inRegion+path, nil)
	}
	succeeded := map[string]bool{}
	for _, call := range m.cloud.Calls() {
		succeeded[call.Operation] = call.Status/100 == 2
	}
	for _, operation := range append([]string{"Token"}, iaasmock.Operations()...) {
		if !succeeded[operation] {
			t.Errorf("%s has not succeeded", operation)
		}
	}
	if diff := cmp.Diff(iaasmock.Operations(), fault.Operations); diff != "" {
		t.Errorf("faults name other operations (-mock +faults):\n%s", diff)
	}
}

// made makes a resource and returns its path.
func (m *mock) made(collection string, body object) string {
	m.t.Helper()
	return collection + "/" + m.want(201, "POST", inRegion+collection, body)["id"].(string)
}

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
		{"!x", []string{"b", "c"}},
		{"kubernetes.io/machine in (a,c)", []string{"a", "c"}},
	} {
		got := names(m.list("/servers?label_selector=" + url.QueryEscape(row.selector)))
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", row.selector, diff)
		}
	}
	m.want(400, "GET", inRegion+"/servers?label_selector=a%3Db,", nil)
}

func TestWhatOnlyDetailsShow(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"userData": "YQ=="})
	m.create(object{"name": "server2"})
	for _, server := range append(m.list("/servers"), m.wantStatus(id, "CREATING")) {
		for _, key := range []string{"nics", "userData", "serviceAccountMails", "networking", "securityGroups"} {
			if value, there := server.(object)[key]; there {
				t.Errorf("without details there is %s: %v", key, value)
			}
		}
	}
	detailed := m.list("/servers?details=true")
	first, second := detailed[0].(object), detailed[1].(object)
	if null, there := second["userData"]; first["userData"] != "YQ==" || null != nil || !there {
		t.Errorf("userData is %v and %v, want null for a server without", first["userData"], null)
	}
	if _, there := first["networking"]; there {
		t.Error("networking in a response breaks clients")
	}
}

func TestProjectsAndRegionsAreApart(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	for _, elsewhere := range []string{
		"/v2/projects/" + iaasmock.SecondProjectID + "/regions/eu01",
		"/v2/projects/" + iaasmock.DefaultProjectID + "/regions/eu02",
	} {
		for _, path := range []string{
			"/servers/" + id, "/networks/" + iaasmock.DefaultNetworkID, "/nics/" + iaasmock.DefaultNICID,
			"/volumes/" + iaasmock.DefaultVolumeID, "/security-groups/" + iaasmock.DefaultSecurityGroupID,
		} {
			m.want(404, "GET", elsewhere+path, nil)
		}
		m.want(404, "DELETE", elsewhere+"/servers/"+id, nil)
		if got := m.want(200, "GET", elsewhere+"/servers", nil)["items"]; len(got.([]any)) > 0 {
			t.Errorf("%s lists %v", elsewhere, got)
		}
	}
	m.want(403, "GET", "/v2/projects/"+nothing+"/regions/eu01/servers", nil)
	m.want(404, "GET", "/v2/projects/"+iaasmock.DefaultProjectID+"/regions/eu09/servers", nil)
}

// A PATCH changes the fields that it has; null removes a label. Whether STACKIT merges labels is not known.
func TestUpdatesOfServers(t *testing.T) {
	change := object{"labels": object{"a": nil, "c": "3"}, "metadata": object{"m": "1"}}
	for _, row := range []struct {
		option []iaasmock.Option
		want   object
	}{
		{nil, object{"b": "2", "c": "3"}},
		{[]iaasmock.Option{iaasmock.WithReplacedLabels()}, object{"c": "3"}},
	} {
		m := openMock(t, row.option...)
		path := inRegion + "/servers/" + m.create(object{"labels": object{"a": "1", "b": "2"}})
		m.want(200, "PATCH", path, change)
		m.want(200, "PATCH", path, object{"name": "new"})
		shown := m.want(200, "GET", path, nil)
		if !cmp.Equal(shown["labels"], row.want) || !cmp.Equal(shown["metadata"], change["metadata"]) ||
			shown["name"] != "new" {
			t.Errorf("it is %v, want labels %v", shown, row.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const schema = "request body has an error: doesn't match schema #/components/schemas/v2CreateServer: "
	for _, row := range []struct {
		name    string
		change  object
		code    int
		message string
	}{
		{"no name", object{"name": nil}, 400,
			schema + `doesn't match schema due to: Error at "/name": property "name" is missing`},
		{"unknown machine type", object{"machineType": "c2i.3"}, 400, "machine type is not valid"},
		{"unknown key pair", object{"keypairName": "mine"}, 404, "resource not found: keypair"},
		{"unknown source type", bootOf(20, "tape", nothing), 400, `source type "tape" is not supported`},
		{"image beside a source", object{"imageId": iaasmock.DefaultImageID}, 400, "imageId conflicts with the source"},
		{"boot volume without size", bootOf(0, "image", iaasmock.DefaultImageID), 400,
			"boot device size is not valid or missing"},
		{"label value too long", object{"labels": object{"a": strings.Repeat("x", 64)}}, 400, "63"},
		{"label that is no string", object{"labels": object{"a": 5}}, 400, "a text as value"},
		{"reserved label", object{"labels": object{"stackit-x": "a"}}, 400, "reserved"},
		{"metadata too long", object{"metadata": object{"a": strings.Repeat("x", 256)}}, 400, "255"},
		{"userData in wrong base64", object{"userData": "abcde"}, 400, "base64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			before := m.holdings()
			answer := m.want(row.code, "POST", inRegion+"/servers", serverBody(row.change))
			if message := answer["msg"].(string); !strings.Contains(message, row.message) ||
				answer["code"] != float64(row.code) {
				t.Errorf("answered %v, want %q", answer, row.message)
			}
			if diff := cmp.Diff(before, m.holdings()); diff != "" || len(m.cloud.Servers()) > 0 {
				t.Errorf("something was made all the same: %s", diff)
			}
		})
	}
}

func TestAnAttachedVolumeIsNotDeletedANICIs(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"volumes": []string{iaasmock.DefaultVolumeID}})
	m.want(409, "DELETE", inRegion+"/volumes/"+iaasmock.DefaultVolumeID, nil)
	m.want(204, "DELETE", network+"/nics/"+m.server(id).NICIDs[0], nil)
	if nics := m.server(id).NICIDs; len(nics) > 0 {
		t.Errorf("the server still has %v", nics)
	}
}

// TestManyClients has clients create, list and delete servers at once, while the test steps the clock
// and reads the state.
func TestManyClients(t *testing.T) {
	const clients, rounds = 8, 15
	m := openMock(t, iaasmock.WithListLag(time.Second))
	var clientsWork sync.WaitGroup
	for client := range clients {
		clientsWork.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("c%d-r%d", client, round)
				_, made := m.do("POST", inRegion+"/servers", serverBody(object{"name": name, "labels": object{"name": name}}))
				id, _ := made["id"].(string)
				for _, call := range []struct{ method, path string }{
					{"GET", "/servers?details=true&label_selector=name%3D" + name}, {"GET", "/quotas"}, {"DELETE", "/servers/" + id},
				} {
					if status := m.status(call.method, inRegion+call.path, nil); status/100 != 2 {
						t.Errorf("%s %s: %d", call.method, call.path, status)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { clientsWork.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			m.clock.Step(100 * time.Millisecond)
			_, _ = m.cloud.Servers(), m.cloud.Calls()
			m.status("GET", "/admin/state", nil)
			m.cloud.Inject(iaasmock.Fault{Delay: 1, Server: "nobody"})()
		}
	}
	m.clock.Step(time.Minute)
	want := iaasmock.Totals{ServersCreated: clients * rounds, ServersDeleted: clients * rounds}
	if got := m.cloud.History(); got != want || len(m.cloud.Servers()) > 0 || len(m.cloud.NICs()) != 1 {
		t.Errorf("history %+v; left are %v with %v", got, m.cloud.Servers(), m.cloud.NICs())
	}
}
