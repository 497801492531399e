// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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

func TestAdminRefusesWrongFaults(t *testing.T) {
	m := openMock(t)
	answer := m.want(400, "POST", "/admin/faults", object{"operation": "CreateServer", "count": 3})
	message, _ := answer["msg"].(string)
	if answer["code"] != 400.0 || !strings.HasPrefix(message, "the fault does nothing") {
		t.Errorf("answered %v", answer)
	}
	m.want(413, "POST", "/admin/faults", strings.Repeat(" ", 5<<20))
	if faults := m.cloud.Faults(); len(faults) > 0 {
		t.Errorf("injected all the same: %v", faults)
	}
	for _, call := range []string{"PUT /admin/faults", "POST /admin/state", "POST /admin/faults/f1"} {
		method, path, _ := strings.Cut(call, " ")
		if got := m.status(method, path, nil); got != 405 {
			t.Errorf("%s: %d", call, got)
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

// What is shown of a preset is what can be sent, and can be narrowed.
func TestPresets(t *testing.T) {
	m := openMock(t)
	shown := m.want(200, "GET", "/admin/faults/presets", nil)["items"].([]any)
	presets := iaasmock.Presets()
	if len(shown) != len(presets) {
		t.Fatalf("%d of %d are shown", len(shown), len(presets))
	}
	for i, preset := range presets {
		m.want(201, "POST", "/admin/faults", shown[i].(object)["fault"])
		if sent := m.cloud.Faults()[0].Fault; preset.Description == "" || !cmp.Equal(sent, preset.Fault) {
			t.Errorf("%+v is shown as %v, read as %+v", preset, shown[i], sent)
		}
		m.want(201, "POST", "/admin/faults", object{
			"preset": preset.Name, "count": 1, "probability": 0.5, "server": "a", "after": "1h",
		})
		m.cloud.ClearFaults()
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
