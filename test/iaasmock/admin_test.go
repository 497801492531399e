// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestAdminInjectsListsAndRemoves(t *testing.T) {
	m := openMock(t)
	now := m.clock.Now().UTC()
	added := m.want(201, "POST", "/admin/faults", object{"preset": "no-capacity", "count": 2, "duration": "1m", "server": "server1"})
	want := object{
		"id": "f1", "name": "no-capacity", "operation": "CreateServer", "server": "server1", "count": 2.0, "duration": "1m0s",
		"finalStatus": "ERROR", "errorMessage": "No valid host was found. There are not enough hosts available.",
		"hits": 0.0, "remaining": 2.0, "endsAt": now.Add(time.Minute).Format(time.RFC3339Nano),
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("answered otherwise (-want +got):\n%s", diff)
	}
	m.want(201, "POST", "/admin/faults", object{"operation": "ListServers", "status": 503, "header": object{"retry-after": []string{"5"}}})
	id := m.create(nil)
	m.clock.Step(boot)
	m.wantStatus(id, "ERROR")

	faults := m.want(200, "GET", "/admin/faults", nil)["items"].([]any)
	if len(faults) != 2 || faults[0].(object)["hits"] != 1.0 || faults[0].(object)["remaining"] != 1.0 || faults[1].(object)["id"] != "f2" {
		t.Errorf("listed %v", faults)
	}
	if header := faults[1].(object)["header"]; !cmp.Equal(header, object{"Retry-After": []any{"5"}}) {
		t.Errorf("header %v", header)
	}
	m.want(204, "DELETE", "/admin/faults/f2", nil)
	m.want(404, "DELETE", "/admin/faults/f2", nil)
	m.list("/servers")
	m.want(204, "DELETE", "/admin/faults", nil)
	if left := m.want(200, "GET", "/admin/faults", nil)["items"].([]any); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	if counts := m.cloud.CallCounts(); len(counts) != 3 {
		t.Errorf("admin requests are counted as calls: %v", counts)
	}
}

func TestAdminSaysWhatIsWrong(t *testing.T) {
	m := openMock(t)
	for _, row := range []struct {
		name string
		body any
		want string
	}{
		{"no JSON", "count=3", `a fault is a JSON object such as {"preset":"no-capacity","count":1}, not count=3`},
		{"null", "null", "a fault is a JSON object"},
		{"trailing text", `{"status":503} {}`, "a fault is a JSON object"},
		{"unknown field", object{"preset": "slow", "cuont": 3}, "cuont: unknown field; known: preset, name, operation,"},
		{"unknown preset", object{"preset": "no-capacities"}, `preset: unknown "no-capacities"; known: no-capacity, quota-exceeded,`},
		{"preset of another type", object{"preset": 3}, "preset: invalid 3; want a text"},
		{"unknown operation", object{"operation": "MakeServer", "status": 503}, `operation: unknown "MakeServer"; known: `},
		{"a number as duration", object{"status": 503, "duration": 5}, `duration: invalid 5; want a duration such as "1m30s"`},
		{"a duration without unit", object{"delay": "5"}, `delay: invalid duration "5"; want one such as "1m30s"`},
		{"a negative duration", object{"delay": "-5s"}, "delay: invalid -5s"},
		{"a text as count", object{"status": 503, "count": "3"}, `count: invalid "3"; want a whole number`},
		{"a negative count", object{"status": 503, "count": -3}, "count: invalid -3"},
		{"probability above one", object{"status": 503, "probability": 10}, "probability: invalid 10; want more than 0 up to 1"},
		{"probability zero", object{"status": 503, "probability": 0}, "probability: 0 would hit nothing"},
		{"a negative rate", object{"status": 429, "rate": -1}, "rate: invalid -1; want the calls a second to let through"},
		{"a burst without a rate", object{"status": 429, "burst": 4}, "burst: invalid 4; want the calls to let through at once, with a rate"},
		{"label selector", object{"status": 503, "labelSelector": "a in b"}, "labelSelector: "},
		{"status", object{"status": 99}, "status: invalid 99; want 200 to 599"},
		{"body without status", object{"body": "x"}, "body and contentType need a status"},
		{"executed without status", object{"operation": "CreateServer", "neverBoots": true, "executed": true}, "executed needs a status or an otherServer"},
		{"an empty project for creations", object{"operation": "CreateServer", "emptyProject": true}, "operation: emptyProject needs IaaS or ListServers or"},
		{"message without status", object{"operation": "CreateServer", "errorMessage": "x"}, "errorMessage needs a finalStatus"},
		{"header", object{"status": 429, "header": "Retry-After: 5"}, `header: invalid "Retry-After: 5"; want {"Retry-After":["5"]}`},
		{"delays reversed", object{"delay": "2s", "delayMax": "1s"}, "delayMax: 1s is less than the delay of 2s"},
		{"distribution", object{"delayMax": "1s", "delayDistribution": "gauss"}, `delayDistribution: unknown "gauss"; known: uniform, normal, longtail`},
		{"another operation's effect", object{"operation": "ListServers", "neverBoots": true}, "operation: neverBoots needs CreateServer"},
		{"nothing", object{"operation": "ListServers", "count": 3}, "the fault does nothing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := m.want(400, "POST", "/admin/faults", row.body)
			if message, _ := answer["msg"].(string); answer["code"] != 400.0 || !strings.HasPrefix(message, row.want) {
				t.Errorf("answered %v\nwant %q", answer, row.want)
			}
		})
	}
	m.want(413, "POST", "/admin/faults", strings.Repeat(" ", 5<<20))
	if faults := m.cloud.Faults(); len(faults) > 0 {
		t.Errorf("injected all the same: %v", faults)
	}
	for _, call := range []struct{ method, path string }{{"PUT", "/admin/faults"}, {"POST", "/admin/state"}, {"POST", "/admin/faults/f1"}} {
		if response, _, err := m.try(call.method, call.path, nil); err != nil || response.StatusCode != 405 {
			t.Errorf("%s %s: %v %v", call.method, call.path, response, err)
		}
	}
}

// A page on another site must not reach a developer's mock through the browser.
func TestAdminRefusesOtherSites(t *testing.T) {
	m := openMock(t)
	host := strings.TrimPrefix(m.url, "http://")
	for _, row := range []struct {
		name         string
		site, origin string
		want         int
	}{
		{"a program", "", "", 201},
		{"the console", "same-origin", "http://" + host, 201},
		{"the console in an old browser", "", "http://" + host, 201},
		{"another site", "cross-site", "https://evil.example", 403},
		{"another site without an origin", "cross-site", "", 403},
		{"another site in an old browser", "", "https://evil.example", 403},
		{"another port", "same-site", "http://127.0.0.1:1", 403},
		{"a sandboxed frame", "", "null", 403},
	} {
		t.Run(row.name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/faults", strings.NewReader(`{"preset":"slow"}`))
			request.Host = host
			for name, value := range map[string]string{"Sec-Fetch-Site": row.site, "Origin": row.origin} {
				if value != "" {
					request.Header.Set(name, value)
				}
			}
			response := httptest.NewRecorder()
			m.cloud.ServeHTTP(response, request)
			if response.Code != row.want {
				t.Errorf("answered %d %s, want %d", response.Code, response.Body, row.want)
			}
		})
	}
	request := httptest.NewRequestWithContext(t.Context(), "GET", "/admin/state", nil)
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	response := httptest.NewRecorder()
	if m.cloud.ServeHTTP(response, request); response.Code != http.StatusForbidden {
		t.Errorf("the state was shown: %d", response.Code)
	}
}

func TestPresets(t *testing.T) {
	m := openMock(t)
	shown := m.want(200, "GET", "/admin/faults/presets", nil)["items"].([]any)
	presets := iaasmock.Presets()
	if len(shown) != len(presets) {
		t.Fatalf("%d of %d are shown", len(shown), len(presets))
	}
	seen := map[string]bool{}
	for i, preset := range presets {
		if seen[preset.Name] || preset.Description == "" || shown[i].(object)["name"] != preset.Name {
			t.Errorf("%+v is shown as %v", preset, shown[i])
		}
		seen[preset.Name] = true
		t.Run(preset.Name, func(*testing.T) {
			m.want(201, "POST", "/admin/faults", object{"preset": preset.Name, "after": "1h"})
			m.want(201, "POST", "/admin/faults", shown[i].(object)["fault"]) // what is shown is what can be sent
			for _, change := range []object{{"count": 1, "probability": 0.5, "server": "a", "labelSelector": "b"}, {"duration": "1s"}} {
				change["preset"] = preset.Name
				m.want(201, "POST", "/admin/faults", change)
			}
			m.cloud.ClearFaults()
		})
	}
	for _, name := range strings.Fields(`no-capacity quota-exceeded boot-error stuck-creating stuck-deleting rate-limited
		rate-limited-retry-after bad-gateway unavailable internal-error-empty lost-answers reset-before hanging half-answers
		random-404 project-404 forbidden unauthorized stale-lists duplicate-servers token-down token-404 token-slow
		token-without-exp token-skew brown-out slow empty-lists lists-unavailable`) {
		if !seen[name] {
			t.Errorf("no preset %s", name)
		}
	}
}

func TestReadmeNamesThePresets(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, preset := range iaasmock.Presets() {
		named = append(named, "`"+preset.Name+"`")
	}
	if line := "\nPresets: " + strings.Join(named, ", ") + ".\n"; !strings.Contains(string(readme), line) {
		t.Errorf("the README lacks %s", line)
	}
}

// Faults are added and removed while calls are made and faults are listed.
func TestFaultsFromManySides(t *testing.T) {
	m := openMock(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 30 {
				removeFault := m.cloud.Inject(iaasmock.Fault{Status: 503, Probability: 0.5, Server: "server1", Header: http.Header{"A": {"b"}}})
				m.status("POST", inRegion+"/servers", serverBody(nil))
				m.status("GET", "/admin/faults", nil)
				removeFault()
			}
		})
		wg.Go(func() {
			for range 30 {
				m.status("POST", "/admin/faults", object{"preset": "stale-lists", "count": 2})
				m.status("GET", inRegion+"/servers", nil)
				for _, fault := range m.cloud.Faults() {
					if fault.Header != nil {
						fault.Header.Set("A", "c") // a copy
					}
					m.status("DELETE", "/admin/faults/"+fault.ID, nil)
				}
			}
		})
	}
	wg.Wait()
	m.cloud.ClearFaults()
	if got := m.status("POST", inRegion+"/servers", serverBody(nil)); got != 201 {
		t.Errorf("without faults a call is answered with %d", got)
	}
}

func TestAFaultSurvivesJSON(t *testing.T) {
	for _, preset := range iaasmock.Presets() {
		encoded, err := json.Marshal(preset.Fault)
		if err != nil {
			t.Fatal(err)
		}
		var read iaasmock.Fault
		if err := json.Unmarshal(encoded, &read); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
		if diff := cmp.Diff(preset.Fault, read); diff != "" {
			t.Errorf("%s changed (-want +got):\n%s", encoded, diff)
		}
	}
}
