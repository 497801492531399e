// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
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
	m.want(204, "DELETE", path, nil)
	m.want(200, "GET", path, nil)
}

func walkNICs(m *mock) {
	network := inRegion + "/networks/" + iaasmock.DefaultDualStackNetworkID
	path := m.made(201, network+"/nics", object{"name": "a", "allowedAddresses": []any{"10.0.0.0/8", "fd00::/64"},
		"labels": object{"a": "b"}})
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
		"availabilityZone": "eu01-1", "name": "a", "size": 20,
		"source": object{"type": "image", "id": iaasmock.DefaultImageID},
	})
	m.list("/volumes?label_selector=a")
	m.want(200, "GET", path, nil)
	m.want(200, "PATCH", path, object{"name": "b", "description": "c", "labels": object{"a": "b"}})
	m.want(204, "DELETE", path, nil)
	m.list("/volume-performance-classes")
	m.want(200, "GET", inRegion+"/volume-performance-classes/storage_premium_perf1", nil)
}

func walkNetworks(m *mock) {
	path := m.made(202, inRegion+"/networks",
		object{"name": "a", "labels": object{"a": "b"}, "ipv4": object{"prefixLength": 25}})
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
		"/networks": iaasmock.DefaultNetworkID, "/images": iaasmock.DefaultImageID,
		"/security-groups": iaasmock.DefaultSecurityGroupID, "/affinity-groups": iaasmock.DefaultAffinityGroupID,
	} {
		m.list(collection)
		m.want(200, "GET", inRegion+collection+"/"+id, nil)
	}
	m.want(200, "GET", inRegion+"/snapshots/"+iaasmock.DefaultSnapshotID, nil)
	m.want(200, "GET", "/v2/keypairs?label_selector=a", nil)
	m.want(200, "GET", "/v2/keypairs/"+iaasmock.DefaultKeypairName, nil)
	m.list("/machine-types")
	m.want(200, "GET", inRegion+"/machine-types/"+iaasmock.DefaultMachineType, nil)
	zones := m.want(200, "GET", "/v2/regions/eu02/availability-zones", nil)["items"]
	if diff := cmp.Diff([]any{"eu02-1", "eu02-2", "eu02-3", "eu02-m"}, zones); diff != "" {
		m.t.Errorf("zones (-want +got):\n%s", diff)
	}
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
	m := openMock(t)
	got := m.want(200, "GET", "/v2/projects/"+iaasmock.DefaultProjectID, nil)
	if got["id"] != iaasmock.DefaultProjectID || got["areaId"] != "PUBLIC" || got["status"] != "CREATED" {
		t.Errorf("IaaS shows %v", got)
	}
	const manager = "/resource-manager/v2/projects/"
	got = m.want(200, "GET", manager+iaasmock.DefaultProjectID+"?includeParents=false", nil)
	if got["name"] != "default" || got["lifecycleState"] != "ACTIVE" {
		t.Errorf("the resource manager shows %v", got)
	}
	for _, unknown := range []string{"/v2/projects/", manager} {
		m.want(403, "GET", unknown+"99999999-0000-4000-8000-000000000002", nil)
	}
	if counts := m.cloud.CallCounts(); counts["GetProjectDetails"] != 2 || counts["GetProject"] != 2 {
		t.Errorf("counted %v", counts)
	}
}

// testdata/refusals.json holds requests and the messages of kin-openapi v0.152.0, which
// STACKIT uses, for them and the API document. Where STACKIT is known to give a schema
// another name, the message has that name.
func TestRefusalsHaveSTACKITsMessages(t *testing.T) {
	encoded, err := os.ReadFile("testdata/refusals.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Method, Path, ContentType, Body, Message string }
	if err := json.Unmarshal(encoded, &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%d refusals, %v", len(rows), err)
	}
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	for _, row := range rows {
		request := httptest.NewRequestWithContext(t.Context(), row.Method, row.Path, strings.NewReader(row.Body))
		request.Header.Set("Content-Type", row.ContentType)
		response := httptest.NewRecorder()
		conformance.Watch(t, cloud).ServeHTTP(response, request)
		want := map[string]int{"method not allowed": 405, "no matching operation was found": 404}[row.Message]
		if want == 0 {
			want = 400
		}
		var answer struct {
			Code int
			Msg  string
		}
		err := json.Unmarshal(response.Body.Bytes(), &answer)
		if err != nil || response.Code != want || answer.Code != want || answer.Msg != row.Message {
			t.Errorf("%s %s %.90s\nsaid %d %s\nwant %d %s", row.Method, row.Path, row.Body, response.Code, response.Body, want,
				row.Message)
		}
	}
	if got := len(cloud.Servers()) + len(cloud.NICs()) + len(cloud.Volumes()); got != 3 {
		t.Errorf("%d resources, want the catalogue's 3", got)
	}
}

func TestCreateServerRefusals(t *testing.T) {
	for _, row := range []struct {
		name    string
		change  object
		code    int
		message string
	}{
		{"unknown machine type", object{"machineType": "c2i.3"}, 400, "machine type is not valid"},
		{"unknown key pair", object{"keypairName": "mine"}, 404, "resource not found: keypair"},
		{"unknown source type", bootOf(20, "tape", nothing), 400, `source type "tape" is not supported`},
		{"image beside a source", object{"imageId": iaasmock.DefaultImageID}, 400, "imageId conflicts with the source"},
		{"image, boot volume without size", object{"imageId": iaasmock.DefaultImageID, "bootVolume": object{}}, 400,
			"boot device size"},
		{"boot volume without size, of a snapshot", bootOf(0, "snapshot", iaasmock.DefaultSnapshotID), 400,
			"boot device size"},
		{"boot volume without size", bootOf(0, "image", iaasmock.DefaultImageID), 400,
			"boot device size is not valid or missing"},
		{"boot volume too large", bootOf(16001, "image", iaasmock.DefaultImageID), 400,
			"boot device size is not valid or missing"},
		{"label value too long", object{"labels": object{"a": strings.Repeat("x", 64)}}, 400, "63"},
		{"label key too long", object{"labels": object{strings.Repeat("x", 64): "a"}}, 400, "63"},
		{"label that is no string", object{"labels": object{"a": 5}}, 400, "must be a string"},
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

func TestInUse(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"volumes": []string{iaasmock.DefaultVolumeID}})
	m.want(409, "DELETE", inRegion+"/volumes/"+iaasmock.DefaultVolumeID, nil)
	m.want(204, "DELETE", inRegion+"/networks/"+iaasmock.DefaultNetworkID+"/nics/"+m.server(id).NICIDs[0], nil)
	if nics := m.server(id).NICIDs; len(nics) > 0 {
		t.Errorf("the server still has %v", nics)
	}
}

func TestANICWithoutSecurityTakesNoAllowedAddresses(t *testing.T) {
	m := openMock(t)
	path := inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + iaasmock.DefaultNICID
	allowed := object{"allowedAddresses": []any{"10.0.0.0/8"}}
	m.want(200, "PATCH", path, object{"nicSecurity": false})
	m.want(409, "PATCH", path, allowed)
	m.want(200, "PATCH", path, object{"allowedAddresses": []any{}})
	m.want(200, "PATCH", path, object{"nicSecurity": true})
	m.want(200, "PATCH", path, allowed)
	m.want(409, "PATCH", path, object{"nicSecurity": false, "allowedAddresses": []any{"10.0.0.1"}})
	if nic, _ := m.nic(iaasmock.DefaultNICID); nic.SecurityDisabled {
		t.Errorf("a refused PATCH changed the NIC: %+v", nic)
	}
}

func TestUnknownCalls(t *testing.T) {
	m := openMock(t)
	for _, row := range []struct {
		code         int
		method, path string
	}{
		{404, "GET", "/v1"}, {404, "GET", "/v2"}, {404, "GET", inRegion + "/backups"}, {404, "GET", inRegion + "//servers"},
		{404, "POST", inRegion + "/servers/" + iaasmock.DefaultNICID + "/stop"},
		{405, "DELETE", inRegion + "/servers"}, {405, "GET", "/token"},
	} {
		answer := m.want(row.code, row.method, row.path, nil)
		if answer["code"] != float64(row.code) || answer["msg"] == "" {
			t.Errorf("%s %s: %v", row.method, row.path, answer)
		}
	}
	if counts := m.cloud.CallCounts(); counts["Unknown"] != 7 || len(counts) != 1 {
		t.Errorf("counted %v", counts)
	}
}

var imageConfig = object{
	"architecture": "x86", "bootMenu": true, "cdromBus": "scsi", "diskBus": "scsi", "nicModel": "virtio",
	"operatingSystem": "linux", "operatingSystemDistro": "a", "operatingSystemVersion": "b", "rescueBus": "usb",
	"rescueDevice": "disk", "secureBoot": true, "uefi": true, "videoModel": "vga", "virtioScsi": true,
}

// bodies are requests with every property that may be sent.
var bodies = []bodyOf{
	{"POST", "/servers", object{
		"name": "a", "machineType": iaasmock.DefaultMachineType, "networking": object{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume": object{
			"size": 20, "performanceClass": "storage_premium_perf1", "deleteOnTermination": true,
			"source": object{"type": "image", "id": iaasmock.DefaultImageID},
		},
		"availabilityZone": "eu01-1", "affinityGroup": iaasmock.DefaultAffinityGroupID,
		"keypairName": iaasmock.DefaultKeypairName, "securityGroups": []any{"workers"},
		"serviceAccountMails": []any{"a@sa.stackit.cloud"}, "userData": "YQ==",
		"labels": object{"a": "b"}, "metadata": object{"a": "b"}, "agent": object{"provisioned": true}, "configDrive": true,
		"volumes": []any{},
	}},
	{"POST", "/servers", object{
		"name": "a", "machineType": iaasmock.DefaultMachineType, "networking": object{"nicIds": []any{iaasmock.DefaultNICID}},
		"imageId": iaasmock.DefaultImageID, "volumes": []any{iaasmock.DefaultVolumeID},
	}},
	{"PATCH", "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + iaasmock.DefaultNICID, object{
		"name": "a", "description": "b", "allowedAddresses": []any{"10.0.0.0/8"}, "labels": object{"a": "b"},
		"nicSecurity": true, "securityGroups": []any{iaasmock.DefaultSecurityGroupID},
	}},
	{"POST", "/networks/" + iaasmock.DefaultDualStackNetworkID + "/nics", object{
		"name": "a", "description": "b", "allowedAddresses": []any{"10.0.0.1"}, "ipv4": "10.1.7.7", "ipv6": "fd00:1::77",
		"labels": object{"a": "b"}, "nicSecurity": true, "securityGroups": []any{iaasmock.DefaultSecurityGroupID},
	}},
	{"POST", "/volumes", object{
		"availabilityZone": "eu01-1", "bootable": true, "description": "a", "labels": object{"a": "b"}, "name": "c",
		"performanceClass": "storage_premium_perf1", "size": 20,
		"source": object{"type": "image", "id": iaasmock.DefaultImageID},
	}},
	{"PATCH", "/volumes/" + iaasmock.DefaultVolumeID, object{
		"name": "a", "description": "b", "bootable": true, "labels": object{"a": "b"}, "imageConfig": imageConfig,
	}},
}

// bodyOf is a body and where it goes, within the region.
type bodyOf struct {
	method, path string
	body         object
}

func (b bodyOf) url() string { return inRegion + b.path }

// deviations are bodies as JSON in which one value differs.
func deviations(body object) []string {
	found := []string{"", "{", "[]", "null", "1", `"x"`}
	changed := append(variants(body), body)
	for _, body := range changed {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		found = append(found, string(encoded))
	}
	return found
}

// variants are the value's replacements, and itself with a replacement within.
func variants(value any) []any {
	replaced := []any{
		nil, true, 0, -1, 1.5, 70000, json.Number("1e400"), json.Number("1e30"), "", "x", "1.2.3.4", "fd00::1",
		strings.Repeat("a", 64), strings.Repeat("a", 256), []any{}, []any{1, "x"}, object{}, object{"x": 1},
		object{"networkId": "x"},
	}
	fields, _ := value.(object)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		without := maps.Clone(fields)
		delete(without, key)
		replaced = append(replaced, without)
		for _, variant := range variants(fields[key]) {
			with := maps.Clone(fields)
			with[key] = variant
			replaced = append(replaced, with)
		}
	}
	return replaced
}

// FuzzBody sends bodies, at first each with each of its values replaced: no answer is a 5xx, a
// refusal has the API's form, and each answer is as the API document has it.
func FuzzBody(f *testing.F) {
	step := 1
	if testing.Short() {
		step = 4
	}
	for i, row := range bodies {
		for some := range slices.Chunk(deviations(row.body), step) {
			f.Add(uint8(i), some[0])
		}
	}
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		row := bodies[int(which)%len(bodies)]
		request := httptest.NewRequestWithContext(t.Context(), row.method, row.url(), strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		conformance.Watch(t, cloud).ServeHTTP(response, request)
		var refused struct {
			Msg  string
			Code int
		}
		if response.Code >= 400 && json.Unmarshal(response.Body.Bytes(), &refused) != nil {
			t.Fatalf("%d %s", response.Code, response.Body)
		}
		if response.Code >= 500 || response.Code >= 400 && (refused.Code != response.Code || refused.Msg == "") {
			t.Errorf("%d %s", response.Code, response.Body)
		}
	})
}

// TestManyClients has clients create, change, list and delete servers at once, some with
// faults, while the test steps the clock and reads the state.
func TestManyClients(t *testing.T) {
	const clients, rounds = 8, 15
	m := openMock(t, iaasmock.WithListLag(time.Second))
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: clients, Status: 500, Header: http.Header{"A": {"b"}}})
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("c%d-r%d", client, round)
				if err := m.serverCycle(name); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			m.clock.Step(100 * time.Millisecond)
			m.readState()
		}
	}
	m.clock.Step(time.Minute)
	if left := m.cloud.Servers(); len(left) > 0 {
		t.Errorf("%d servers are left", len(left))
	}
	if nics, volumes := len(m.cloud.NICs()), len(m.cloud.Volumes()); nics != 1 || volumes != 2 {
		t.Errorf("%d NICs and %d volumes are left, want the catalogue's", nics, volumes)
	}
	if totals := m.cloud.History(); totals.ServersCreated != clients*rounds || totals.ServersDeleted != clients*rounds {
		t.Errorf("history %+v", totals)
	}
	if counts := m.cloud.CallCounts(); counts["CreateServer"] != clients*rounds ||
		counts["ListServers"] != clients*rounds {
		t.Errorf("counts %v", counts)
	}
}

// serverCycle creates a server, a NIC and a volume, changes them and deletes them.
func (m *mock) serverCycle(name string) error {
	nics := "/networks/" + iaasmock.DefaultDualStackNetworkID + "/nics"
	paths := map[string]string{}
	for collection, body := range map[string]object{
		"/servers": serverBody(object{"name": name, "labels": object{"name": name}}),
		"/volumes": {"availabilityZone": "eu01-1", "size": 1}, nics: {},
	} {
		response, raw, err := m.try("POST", inRegion+collection, body)
		var made struct{ ID string }
		if err != nil || response.StatusCode != 201 || json.Unmarshal(raw, &made) != nil {
			return fmt.Errorf("POST %s: %s %w", collection, raw, err)
		}
		paths[collection] = collection + "/" + made.ID
	}
	server := paths["/servers"]
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{"PATCH", paths[nics], object{"name": name}}, {"PATCH", server, object{"labels": object{"touched": "yes"}}},
		{"GET", server + "?details=true", nil}, {"GET", server + "/nics", nil}, {"GET", "/quotas", nil},
		{"GET", "/servers?details=true&label_selector=name%3D" + name, nil},
		{"DELETE", server, nil}, {"DELETE", paths["/volumes"], nil}, {"DELETE", paths[nics], nil},
	} {
		if _, body, err := m.try(call.method, inRegion+call.path, call.body); err != nil {
			return fmt.Errorf("%s %s: %s %w", call.method, call.path, body, err)
		}
	}
	return nil
}

// readState calls the methods that return the state.
func (m *mock) readState() {
	for _, server := range m.cloud.Servers() {
		_ = fmt.Sprint(server)
	}
	_, _, _ = m.cloud.NICs(), m.cloud.Volumes(), m.cloud.Calls()
	_, _ = m.cloud.CallCounts(), m.cloud.History()
	removeFault := m.cloud.Inject(iaasmock.Fault{Delay: 1, Server: "nobody", Header: http.Header{"A": {"b"}}})
	_ = m.cloud.Faults()
	m.status("GET", "/admin/faults", nil)
	removeFault()
}
