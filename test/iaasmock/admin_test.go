// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func (m *mock) state() object {
	m.t.Helper()
	return m.want(200, "GET", "/admin/state", nil)
}

func TestStateShowsEverything(t *testing.T) {
	m := openMock(t)
	const secret = "token: abcdef.0123456789abcdef"
	id := m.create(object{"labels": object{"a": "b"}, "userData": []byte(secret)})
	m.clock.Step(boot)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.cloud.Inject(iaasmock.Fault{Name: "odd", Operation: "ListServers", Status: 500, Count: 3})
	m.want(500, "GET", inRegion+"/servers?details=true", nil)

	state := m.state()
	server := state["servers"].([]any)[0].(object)
	if server["id"] != id || server["status"] != "DELETING" || server["labels"].(object)["a"] != "b" {
		t.Errorf("server %v", server)
	}
	if _, shown := server["userData"]; shown || server["userDataSize"] != float64(len(secret)) {
		t.Errorf("its user data is %v, of %v bytes", server["userData"], server["userDataSize"])
	}
	var line []string
	for _, milestone := range server["timeline"].([]any) {
		line = append(line, fmt.Sprint(milestone.(object)["status"], milestone.(object)["ahead"]))
	}
	if got := strings.Join(line, ", "); got != "CREATING<nil>, ACTIVE<nil>, DELETING<nil>, GONEtrue" {
		t.Errorf("timeline %s", got)
	}
	if nics, volumes := state["nics"].([]any), state["volumes"].([]any); len(nics) != 2 || len(volumes) != 3 {
		t.Errorf("NICs %v, volumes %v", nics, volumes)
	}
	if fault := state["faults"].([]any)[0].(object); fault["name"] != "odd" || fault["hits"] != 1.0 ||
		fault["remaining"] != 2.0 {
		t.Errorf("fault %v", fault)
	}
	if history := state["history"].(object); history["serversCreated"] != 1.0 || history["serversDeleted"] != 0.0 {
		t.Errorf("history %v", history)
	}
	calls := state["lastCalls"].([]any)
	if len(calls) != 3 || calls[0].(object)["operation"] != "CreateServer" || state["callsTotal"] != 3.0 {
		t.Fatalf("%v calls: %v", state["callsTotal"], calls)
	}
	last := calls[2].(object)
	for field, want := range (object{
		"operation": "ListServers", "method": "GET", "path": inRegion + "/servers", "status": 500.0, "replaced": true,
		"query": object{"details": []any{"true"}}, "faults": []any{"f1"},
		"startedAt": m.clock.Now().Format(time.RFC3339Nano),
	}) {
		if !cmp.Equal(last[field], want) {
			t.Errorf("%s of the last call is %v, want %v", field, last[field], want)
		}
	}
}

func TestStateOfManyCalls(t *testing.T) {
	m := openMock(t)
	for i := range 20010 { // more than the mock keeps
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("/v2/keypairs?n=%d", i), nil)
		m.cloud.ServeHTTP(httptest.NewRecorder(), request)
	}
	state := m.state()
	calls := state["lastCalls"].([]any)
	if last := calls[len(calls)-1].(object)["query"].(object)["n"].([]any)[0]; len(calls) != 200 || last != "20009" {
		t.Errorf("%d calls up to %v, want the last 200", len(calls), last)
	}
	if counts := state["calls"].(object); counts["ListKeyPairs"] != 20010.0 || len(counts) != 1 ||
		len(m.cloud.Calls()) != 20000 {
		t.Errorf("%v are counted, %d kept", counts, len(m.cloud.Calls()))
	}
	m.cloud.ResetCalls()
	state = m.state()
	if len(state["lastCalls"].([]any))+len(state["calls"].(object)) > 0 || state["callsTotal"] != 20010.0 {
		t.Errorf("after a reset: %v", state)
	}
}

func TestAdminChangesAServer(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.want(204, "POST", "/admin/servers/"+id+"/status", object{"status": "ERROR", "errorMessage": "no luck"})
	if server := m.server(id); server.Status != "ERROR" || server.ErrorMessage != "no luck" {
		t.Errorf("server %+v", server)
	}
	const status = "/status"
	for name, row := range map[string]struct {
		status       int
		method, path string
		body         any
		says         string
	}{
		"status of no server":  {404, "POST", nothing + status, object{"status": "ERROR"}, "server not found"},
		"removal of no server": {404, "DELETE", nothing, nil, "server not found"},
		"no body":              {400, "POST", id + status, nil, `such as {"status":"ERROR",`},
		"no JSON":              {400, "POST", id + status, "ERROR", `such as {"status":"ERROR",`},
		"no status":            {400, "POST", id + status, object{"errorMessage": "x"}, "status is missing"},
		"an unknown field": {400, "POST", id + status, object{"status": "ACTIVE", "message": "x"},
			`unknown field "message"`},
	} {
		code, answer := m.do(row.method, "/admin/servers/"+row.path, row.body)
		said, _ := answer["msg"].(string)
		if code != row.status || answer["code"] != float64(row.status) || !strings.Contains(said, row.says) {
			t.Errorf("%s: answered %d %v, want %d with %q", name, code, answer, row.status, row.says)
		}
	}
	m.wantStatus(id, "ERROR")
	m.want(204, "DELETE", "/admin/servers/"+id, nil)
	m.wantStatus(id, "")
	if nics, volumes := m.cloud.NICs(), m.cloud.Volumes(); len(nics) != 1 || len(volumes) != 2 {
		t.Errorf("left are %v and %v, want the catalogue's", nics, volumes)
	}
	m.want(404, "DELETE", "/admin/servers/"+id, nil)
	if counts := m.cloud.CallCounts(); counts["DeleteServer"] > 0 {
		t.Errorf("removed by hand, counted as calls: %v", counts)
	}
}

func TestAdminInjectsListsAndRemovesFaults(t *testing.T) {
	m := openMock(t)
	added := m.want(201, "POST", "/admin/faults",
		object{"preset": "no-capacity", "count": 2, "duration": "1m", "server": "server1"})
	want := object{
		"id": "f1", "name": "no-capacity", "operation": "CreateServer", "server": "server1", "count": 2.0, "duration": "1m0s",
		"finalStatus": "ERROR", "errorMessage": "No valid host was found. There are not enough hosts available.",
		"hits": 0.0, "remaining": 2.0, "endsAt": m.clock.Now().UTC().Add(time.Minute).Format(time.RFC3339Nano),
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("answered otherwise (-want +got):\n%s", diff)
	}
	m.want(201, "POST", "/admin/faults", object{"operation": "ListServers", "status": 503})
	m.create(nil)
	faults := m.want(200, "GET", "/admin/faults", nil)["items"].([]any)
	if len(faults) != 2 || faults[0].(object)["hits"] != 1.0 || faults[0].(object)["remaining"] != 1.0 ||
		faults[1].(object)["id"] != "f2" {
		t.Errorf("listed %v", faults)
	}
	m.want(204, "DELETE", "/admin/faults/f2", nil)
	m.want(404, "DELETE", "/admin/faults/f2", nil)
	m.list("/servers")
	m.want(204, "DELETE", "/admin/faults", nil)
	if left := m.cloud.Faults(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	answer := m.want(400, "POST", "/admin/faults", object{"operation": "CreateServer", "count": 3})
	if message, _ := answer["msg"].(string); answer["code"] != 400.0 ||
		!strings.HasPrefix(message, "the fault does nothing") {
		t.Errorf("answered %v", answer)
	}
	if counts := m.cloud.CallCounts(); len(counts) != 2 {
		t.Errorf("admin requests are counted as calls: %v", counts)
	}
}

// A page on another site must not reach a developer's mock through the browser.
func TestAdminRefusesOtherSites(t *testing.T) {
	m := openMock(t)
	host := strings.TrimPrefix(m.url, "http://")
	for _, row := range []struct {
		name         string
		site, origin string
		refused      bool
	}{
		{"a program", "", "", false},
		{"the console", "same-origin", "http://" + host, false},
		{"the console in an old browser", "", "http://" + host, false},
		{"another site", "cross-site", "https://evil.example", true},
		{"another site without an origin", "cross-site", "", true},
		{"another site in an old browser", "", "https://evil.example", true},
		{"another port", "same-site", "http://127.0.0.1:1", true},
		{"a sandboxed frame", "", "null", true},
	} {
		for _, call := range []struct {
			method, path, body string
			allowed            int
		}{{"POST", "/admin/faults", `{"preset":"slow"}`, 201}, {"GET", "/admin/state", "", 200}} {
			request := httptest.NewRequestWithContext(t.Context(), call.method, call.path, strings.NewReader(call.body))
			request.Host = host
			for name, value := range map[string]string{"Sec-Fetch-Site": row.site, "Origin": row.origin} {
				if value != "" {
					request.Header.Set(name, value)
				}
			}
			response := httptest.NewRecorder()
			m.cloud.ServeHTTP(response, request)
			want := map[bool]int{false: call.allowed, true: 403}[row.refused]
			if response.Code != want {
				t.Errorf("%s: %s answers %d %s, want %d", row.name, call.path, response.Code, response.Body, want)
			}
		}
	}
}

// What is shown of a preset is what can be sent, and can be narrowed.
func TestPresets(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := openMock(t)
	shown := m.want(200, "GET", "/admin/faults/presets", nil)["items"].([]any)
	named := make([]string, 0, len(shown))
	for i, preset := range iaasmock.Presets() {
		named = append(named, "`"+preset.Name+"`")
		m.want(201, "POST", "/admin/faults", shown[i].(object)["fault"])
		if sent := m.cloud.Faults()[0].Fault; preset.Description == "" || !cmp.Equal(sent, preset.Fault) {
			t.Errorf("%+v is shown as %v, read as %+v", preset, shown[i], sent)
		}
		m.inject(preset.Name, object{"count": 1, "probability": 0.5, "after": "1h"})
		m.cloud.ClearFaults()
	}
	if line := "\nPresets: " + strings.Join(named, ", ") + ".\n"; len(named) != len(shown) ||
		!strings.Contains(string(readme), line) {
		t.Errorf("the README lacks %s", line)
	}
}

func TestTheREADMEListsEveryFieldOfAFault(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "A fault has four kinds of fields")
	table, _, _ = strings.Cut(table, "\nPresets: ")
	for i := range reflect.TypeFor[iaasmock.Fault]().NumField() {
		name := reflect.TypeFor[iaasmock.Fault]().Field(i).Name
		key := strings.ToLower(name[:1]) + name[1:]
		if name != "Name" && name != "Match" && !strings.Contains(table, "`"+key+"`") {
			t.Errorf("the README's table of fields lacks `%s`", key)
		}
	}
}

func TestConsoleServesItsPage(t *testing.T) {
	m := openMock(t)
	for path, contentType := range map[string]string{
		"/": "text/html", "/console/main.js": "text/javascript", "/console/icon.svg": "image/svg+xml",
		"/console/panels.css": "text/css", "/healthz": "text/plain",
	} {
		response, body, err := m.try("GET", path, nil)
		if err != nil || response.StatusCode != 200 || len(body) == 0 {
			t.Fatalf("GET %s: %v %v", path, response, err)
		}
		if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, contentType) {
			t.Errorf("%s is %q, want %s", path, got, contentType)
		}
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
	}
	for path, want := range map[string]int{"/console/none.js": 404, "/console/..%2Fadmin.go": 404} {
		if got := m.status("GET", path, nil); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	for _, path := range []string{"/", "/admin/state", "/admin/faults/f1"} {
		if got := m.status("PUT", path, nil); got != 405 {
			t.Errorf("PUT %s: %d, want 405", path, got)
		}
	}
	if counts := m.cloud.CallCounts(); len(counts) > 0 {
		t.Errorf("the console counts as API calls: %v", counts)
	}
}
