// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// ask sends a call and returns the ID of its request, and of what it made.
func (m *mock) ask(method, path string, body any) (requestID, made string) {
	m.t.Helper()
	response, raw, err := m.try(method, inRegion+path, body)
	if err != nil || response.StatusCode >= 300 {
		m.t.Fatalf("%s %s: %s %v", method, path, raw, err)
	}
	var view struct{ ID string }
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &view); err != nil {
			m.t.Fatal(err)
		}
	}
	return response.Header.Get("X-Request-Id"), view.ID
}

// wantProgress checks what a request is said to have come to.
func (m *mock) wantProgress(requestID, resourceType, do, id, status string) {
	m.t.Helper()
	got := m.want(200, "GET", inRegion+"/requests/"+requestID, nil)
	want := object{
		"requestId": requestID, "requestType": resourceType, "requestAction": do, "status": status,
		"resources": []any{object{"id": id, "type": resourceType, "status": status}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsOfAServer(t *testing.T) {
	m := openMock(t)
	created, id := m.ask("POST", "/servers", serverBody(nil))
	m.wantProgress(created, "SERVER", "CREATE", id, "CREATING")
	m.clock.Step(boot)
	m.wantProgress(created, "SERVER", "CREATE", id, "CREATED")

	stopped, _ := m.ask("POST", "/servers/"+id+"/stop", nil)
	labelled, _ := m.ask("PATCH", "/servers/"+id, object{"labels": object{"a": "b"}})
	m.wantProgress(stopped, "SERVER", "UPDATE", id, "UPDATING")
	m.wantProgress(labelled, "SERVER", "UPDATE", id, "UPDATED")
	m.clock.Step(action)
	m.wantProgress(stopped, "SERVER", "UPDATE", id, "UPDATED")

	m.cloud.Inject(iaasmock.Fault{Operation: "StartServer", FinalStatus: "ERROR"})
	started, _ := m.ask("POST", "/servers/"+id+"/start", nil)
	m.clock.Step(action)
	m.wantProgress(started, "SERVER", "UPDATE", id, "FAILED")
	m.wantProgress(created, "SERVER", "CREATE", id, "CREATED")

	deleted, _ := m.ask("DELETE", "/servers/"+id, nil)
	m.wantProgress(deleted, "SERVER", "DELETE", id, "DELETING")
	m.clock.Step(remove)
	m.wantProgress(deleted, "SERVER", "DELETE", id, "DELETED")

	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", FinalStatus: "ERROR"})
	m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", FinalStatus: "ERROR"})
	failed, id := m.ask("POST", "/servers", serverBody(nil))
	m.clock.Step(boot)
	m.wantProgress(failed, "SERVER", "CREATE", id, "FAILED")
	kept, _ := m.ask("DELETE", "/servers/"+id, nil)
	m.clock.Step(remove)
	m.wantProgress(kept, "SERVER", "DELETE", id, "FAILED")
}

func TestRequestsOfOtherThings(t *testing.T) {
	m := openMock(t)
	nics := "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	made, nic := m.ask("POST", nics, object{})
	m.wantProgress(made, "NIC", "CREATE", nic, "CREATED")
	changed, _ := m.ask("PATCH", nics+"/"+nic, object{})
	m.wantProgress(changed, "NIC", "UPDATE", nic, "UPDATED")
	gone, _ := m.ask("DELETE", nics+"/"+nic, nil)
	m.wantProgress(gone, "NIC", "DELETE", nic, "DELETED")
	id, server := m.running(nil)
	attached, _ := m.ask("PUT", server[len(inRegion):]+"/volume-attachments/"+iaasmock.DefaultVolumeID, nil)
	m.wantProgress(attached, "SERVER", "UPDATE", id, "UPDATED")

	read, _ := m.ask("GET", "/servers", nil)
	m.want(404, "GET", inRegion+"/requests/"+read, nil)
	m.want(404, "GET", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu01/requests/"+made, nil)
	response, _, err := m.try("POST", inRegion+"/servers", serverBody(object{"machineType": "c2i.3"}))
	if err != nil {
		t.Fatal(err)
	}
	m.want(404, "GET", inRegion+"/requests/"+response.Header.Get("X-Request-Id"), nil)
}

func TestOldRequestsAreForgotten(t *testing.T) {
	m := openMock(t)
	path := "/volumes/" + iaasmock.DefaultVolumeID
	first, _ := m.ask("PATCH", path, object{})
	second, _ := m.ask("PATCH", path, object{})
	for i := range 4999 {
		call(t, m.cloud, "PATCH", path, fmt.Sprintf(`{"name":"v%d"}`, i))
	}
	m.want(404, "GET", inRegion+"/requests/"+first, nil)
	m.wantProgress(second, "VOLUME", "UPDATE", iaasmock.DefaultVolumeID, "UPDATED")
}
