// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const unknownID = "00000000-0000-4000-8000-00000000dead"

func TestConsoleServesItsPage(t *testing.T) {
	m := openMock(t)
	for path, contentType := range map[string]string{
		"/":                   "text/html",
		"/console/main.js":    "text/javascript",
		"/console/icon.svg":   "image/svg+xml",
		"/console/panels.css": "text/css",
	} {
		response, body, err := m.try("GET", path, nil)
		if err != nil || response.StatusCode != 200 || len(body) == 0 {
			t.Fatalf("GET %s: %v %v", path, response, err)
		}
		header := response.Header
		if got := header.Get("Content-Type"); !strings.HasPrefix(got, contentType) {
			t.Errorf("%s is %q, want %s", path, got, contentType)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
	}
	for _, path := range []string{"/console/", "/console/none.js", "/console/..%2Fconsole.go", "/console/a/b"} {
		if response, _, err := m.try("GET", path, nil); err != nil || response.StatusCode != 404 {
			t.Errorf("GET %s: %v %v, want 404", path, response, err)
		}
	}
	if counts := m.cloud.CallCounts(); len(counts) > 0 {
		t.Errorf("the console counts as API calls: %v", counts)
	}
}

func TestConsoleShowsAServer(t *testing.T) {
	m := openMock(t)
	const secret = "token: abcdef.0123456789abcdef"
	id := m.create(object{"labels": object{"a": "b"}, "userData": []byte(secret)})
	m.clock.Step(boot)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)

	details := m.want(200, "GET", "/admin/servers/"+id, nil)
	if details["status"] != "DELETING" || details["name"] != "server1" || details["labels"].(object)["a"] != "b" {
		t.Errorf("fields %v", details)
	}
	if nics, volumes := details["nics"].([]any), details["volumes"].([]any); len(nics) != 1 || nics[0].(object)["ipv4"] == "" || len(volumes) != 1 {
		t.Errorf("NICs %v, volumes %v", nics, volumes)
	}
	var line []string
	for _, milestone := range details["timeline"].([]any) {
		state := milestone.(object)["status"].(string)
		if _, ahead := milestone.(object)["ahead"]; ahead {
			state += " ahead"
		}
		line = append(line, state)
	}
	if got := strings.Join(line, ", "); got != "CREATING, ACTIVE, DELETING, GONE ahead" {
		t.Errorf("timeline %s", got)
	}
	_, raw, err := m.try("GET", "/admin/servers/"+id, nil)
	if _, shown := details["userData"]; err != nil || shown || details["userDataSize"] != float64(len(secret)) || strings.Contains(string(raw), "token") {
		t.Errorf("user data shows: %v %s", err, raw)
	}
}

func TestConsoleChangesAServer(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "StopServer", Status: 500})
	id := m.create(nil)
	m.want(409, "POST", "/admin/servers/"+id+"/stop", nil)
	m.clock.Step(boot)
	m.want(204, "POST", "/admin/servers/"+id+"/stop", nil)
	m.wantStatus(id, "STOPPING")
	m.clock.Step(time.Minute)
	m.wantStatus(id, "INACTIVE")

	m.want(204, "POST", "/admin/servers/"+id+"/status", object{"status": "ERROR", "errorMessage": "no luck"})
	if server := m.server(id); server.Status != "ERROR" || server.ErrorMessage != "no luck" {
		t.Errorf("server %+v", server)
	}
	m.want(204, "DELETE", "/admin/servers/"+id, nil)
	m.wantStatus(id, "")
	if counts := m.cloud.CallCounts(); counts["StopServer"] > 0 || counts["DeleteServer"] > 0 {
		t.Errorf("done by hand, counted as calls: %v", counts)
	}
}

func TestConsoleRefuses(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	for name, c := range map[string]struct {
		status       int
		method, path string
		body         any
	}{
		"details of no server":   {404, "GET", "/admin/servers/" + unknownID, nil},
		"status of no server":    {404, "POST", "/admin/servers/" + unknownID + "/status", object{"status": "ERROR"}},
		"stop of no server":      {404, "POST", "/admin/servers/" + unknownID + "/stop", nil},
		"removal of no server":   {404, "DELETE", "/admin/servers/" + unknownID, nil},
		"no body":                {400, "POST", "/admin/servers/" + id + "/status", nil},
		"no JSON":                {400, "POST", "/admin/servers/" + id + "/status", "ERROR"},
		"no status":              {400, "POST", "/admin/servers/" + id + "/status", object{"errorMessage": "x"}},
		"a status that is none":  {400, "POST", "/admin/servers/" + id + "/status", object{"status": "<b>"}},
		"an unknown field":       {400, "POST", "/admin/servers/" + id + "/status", object{"status": "ERROR", "message": "x"}},
		"two values":             {400, "POST", "/admin/servers/" + id + "/status", `{"status":"ERROR"}{}`},
		"a body beyond measure":  {413, "POST", "/admin/servers/" + id + "/status", object{"status": "ERROR", "errorMessage": strings.Repeat("x", 5<<20)}},
		"calls without a number": {400, "GET", "/admin/calls?limit=all", nil},
		"no calls":               {400, "GET", "/admin/calls?limit=0", nil},
		"too many calls":         {400, "GET", "/admin/calls?limit=20001", nil},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer := m.do(c.method, c.path, c.body)
			if code != c.status || answer["code"] != float64(c.status) || answer["msg"] == "" {
				t.Errorf("answered %d %v, want %d with a message", code, answer, c.status)
			}
		})
	}
	if server := m.server(id); server.Status != "CREATING" {
		t.Errorf("a refused call changed the server: %+v", server)
	}
	for _, call := range [][2]string{{"POST", "/"}, {"PUT", "/admin/servers/" + id}, {"POST", "/admin/calls"}, {"GET", "/admin/servers/" + id + "/stop"}} {
		if response, _, err := m.try(call[0], call[1], nil); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %v %v, want 405", call[0], call[1], response, err)
		}
	}
}

func TestConsoleListsTheLastCalls(t *testing.T) {
	m := openMock(t)
	if items := m.want(200, "GET", "/admin/calls", nil)["items"].([]any); len(items) != 0 {
		t.Errorf("calls %v", items)
	}
	id := m.create(nil)
	m.wantStatus(id, "CREATING")
	m.list("/servers")
	items := m.want(200, "GET", "/admin/calls?limit=2", nil)["items"].([]any)
	if len(items) != 2 || items[0].(object)["operation"] != "ListServers" || items[1].(object)["operation"] != "GetServer" {
		t.Errorf("calls %v, want the last two, the newest first", items)
	}
	for i := range 20010 { // more than the mock keeps
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("/v2/keypairs?n=%d", i), nil)
		m.cloud.ServeHTTP(httptest.NewRecorder(), request)
	}
	items = m.want(200, "GET", "/admin/calls?limit=2", nil)["items"].([]any)
	if query := items[1].(object)["query"].(object); len(items) != 2 || query["n"].([]any)[0] != "20008" {
		t.Errorf("calls %v, want the last two of many", items)
	}
	if got := m.cloud.CallCounts()["ListKeyPairs"]; got != 20010 || len(m.cloud.Calls()) != 20000 {
		t.Errorf("%d calls are counted, %d kept", got, len(m.cloud.Calls()))
	}
	m.cloud.ResetCalls()
	if items := m.want(200, "GET", "/admin/calls", nil)["items"].([]any); len(items) != 0 {
		t.Errorf("calls after a reset: %v", items)
	}
}
