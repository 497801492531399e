// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// inject adds a preset with changes, over HTTP.
func (m *mock) inject(preset string, change object) {
	m.t.Helper()
	body := object{"preset": preset}
	maps.Copy(body, change)
	m.want(201, "POST", "/admin/faults", body)
}

func TestAnswersOfPresets(t *testing.T) {
	create := func(m *mock) (*http.Response, []byte, error) {
		return m.try("POST", inRegion+"/servers", serverBody(nil))
	}
	list := func(m *mock) (*http.Response, []byte, error) { return m.try("GET", inRegion+"/servers", nil) }
	read := func(m *mock) (*http.Response, []byte, error) {
		return m.try("GET", inRegion+"/servers/"+m.cloud.Servers()[0].ID, nil)
	}
	remove := func(m *mock) (*http.Response, []byte, error) {
		return m.try("DELETE", inRegion+"/servers/"+m.cloud.Servers()[0].ID, nil)
	}
	for preset, row := range map[string]struct {
		call              func(m *mock) (*http.Response, []byte, error)
		status            int
		contentType, body string
		retryAfter        string
	}{
		"quota-exceeded":           {create, 403, "application/json", "Quota exceeded", ""},
		"bad-request":              {create, 400, "application/json", `{"code":400,"msg":"The affinity group policy is not supported"}`, ""},
		"too-large":                {create, 413, "application/json", `{"code":413,"msg":"Request Entity Too Large"}`, ""},
		"unauthorized":             {list, 401, "application/json", `{"code":401,"msg":"Unauthorized"}`, ""},
		"forbidden":                {list, 403, "application/json", `{"code":403,"msg":"Forbidden"}`, ""},
		"random-404":               {read, 404, "application/json", `{"code":404,"msg":"server not found"}`, ""},
		"project-404":              {read, 404, "application/json", `{"code":404,"msg":"project not found"}`, ""},
		"conflict":                 {remove, 409, "application/json", `{"code":409,"msg":"Conflict"}`, ""},
		"rate-limited":             {list, 429, "application/json", `{"code":429,"msg":"Too Many Requests"}`, ""},
		"rate-limited-retry-after": {list, 429, "application/json", `{"code":429,"msg":"Too Many Requests"}`, "5"},
		"internal-error-empty":     {list, 500, "text/plain", "", ""},
		"bad-gateway":              {list, 502, "text/html", "<h1>502 Bad Gateway</h1>", ""},
		"unavailable":              {list, 503, "application/json", `{"code":503,"msg":"Service Unavailable"}`, ""},
		"gateway-timeout":          {create, 504, "text/plain", "upstream request timeout", ""},
	} {
		t.Run(preset, func(t *testing.T) {
			m := openMock(t)
			m.create(nil)
			m.inject(preset, object{"count": 1, "probability": 1})
			response, body, err := row.call(m)
			if err != nil {
				t.Fatal(err)
			}
			empty := row.body == "" && len(body) > 0
			if response.StatusCode != row.status || empty || !strings.Contains(string(body), row.body) ||
				response.Header.Get("Content-Type") != row.contentType || response.Header.Get("Retry-After") != row.retryAfter {
				t.Errorf("answered %d %q %v", response.StatusCode, body, response.Header)
			}
			made := 1
			if preset == "gateway-timeout" {
				made = 2
			}
			if servers := m.cloud.Servers(); len(servers) != made || servers[0].Status != "CREATING" {
				t.Errorf("there are %+v, want %d", servers, made)
			}
			if response, body, err := row.call(m); err != nil || response.StatusCode >= 300 {
				t.Errorf("after the fault: %v %s %v", response, body, err)
			}
		})
	}
}

func TestServersOfPresets(t *testing.T) {
	m := openMock(t)
	m.inject("no-capacity", object{"count": 1})
	m.inject("boot-error", object{"server": "broken"})
	m.inject("stuck-creating", object{"labelSelector": "stuck=yes"})
	m.inject("delete-error", object{"server": "bad"})
	full, broken := m.create(nil), m.create(object{"name": "broken"})
	stuck, good := m.create(object{"labels": object{"stuck": "yes"}}), m.create(object{"name": "bad"})
	m.clock.Step(time.Hour)
	if message := m.wantStatus(full, "ERROR")["errorMessage"]; message != "No valid host was found. There are not enough hosts available." {
		t.Errorf("errorMessage %v", message)
	}
	if message, _ := m.wantStatus(broken, "ERROR")["errorMessage"].(string); !strings.HasPrefix(message, "Build of instance aborted") {
		t.Errorf("errorMessage %v", message)
	}
	m.wantStatus(stuck, "CREATING")
	m.wantStatus(good, "ACTIVE")

	m.want(204, "DELETE", inRegion+"/servers/"+good, nil)
	m.inject("stuck-deleting", object{"count": 1})
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(time.Hour)
	m.wantStatus(good, "ERROR")
	m.wantStatus(full, "DELETING")
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(remove)
	m.wantStatus(full, "")
}

func TestOneRequestMakesTwoServers(t *testing.T) {
	m := openMock(t)
	m.inject("duplicate-servers", object{"count": 2})
	id := m.create(object{"name": "twin", "labels": object{"a": "b"}})
	servers := m.cloud.Servers()
	if len(servers) != 2 || servers[0].ID != id || servers[1].ID == id || servers[1].Name != "twin" || servers[1].Labels["a"] != "b" {
		t.Fatalf("there are %+v", servers)
	}
	if a, b := servers[0], servers[1]; a.NICIDs[0] == b.NICIDs[0] || a.BootVolume.ID == b.BootVolume.ID {
		t.Errorf("they share what they are made of: %+v", servers)
	}
	m.create(object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	if got := len(m.cloud.Servers()); got != 3 {
		t.Errorf("%d servers, want 3: a NIC cannot be in two", got)
	}
}

func TestStaleReads(t *testing.T) {
	m := openMock(t)
	old := m.create(object{"name": "old"})
	m.clock.Step(time.Minute)
	m.inject("stale-lists", nil)
	m.inject("stale-reads", nil)
	young := m.create(object{"name": "young"})
	m.want(204, "DELETE", inRegion+"/servers/"+old, nil)
	m.clock.Step(9 * time.Second) // old is gone since 4 s
	m.wantStatus(old, "ACTIVE")
	m.wantStatus(young, "")
	if diff := cmp.Diff([]string{"old"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	m.clock.Step(20 * time.Second)
	m.wantStatus(old, "")
	m.wantStatus(young, "ACTIVE")
	if diff := cmp.Diff([]string{"old"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	m.cloud.ClearFaults()
	if diff := cmp.Diff([]string{"young"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("listed afterwards (-want +got):\n%s", diff)
	}
}

func TestConnectionsOfPresets(t *testing.T) {
	for preset, row := range map[string]struct {
		want error
		made int
	}{
		"lost-answers": {syscall.ECONNRESET, 1},
		"reset-before": {syscall.ECONNRESET, 0},
		"half-answers": {io.ErrUnexpectedEOF, 1},
	} {
		t.Run(preset, func(t *testing.T) {
			m := openMock(t)
			m.inject(preset, nil)
			response, body, err := m.try("POST", inRegion+"/servers", serverBody(nil))
			if !errors.Is(err, row.want) {
				t.Errorf("answered %v %q %v, want %v", response, body, err, row.want)
			}
			if preset == "half-answers" && (response.StatusCode != 201 || !strings.HasPrefix(string(body), `{"id":"`)) {
				t.Errorf("half of the answer is %d %q", response.StatusCode, body)
			}
			if got := len(m.cloud.Servers()); got != row.made {
				t.Errorf("%d servers, want %d", got, row.made)
			}
		})
	}
}

func TestHalfOfAnAnswerWithoutBody(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.inject("half-answers", nil)
	if response, _, err := m.try("DELETE", inRegion+"/servers/"+id, nil); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("answered %v %v", response, err)
	}
	if status := m.server(id).Status; status != "DELETING" {
		t.Errorf("the server is %s", status)
	}
}

func TestAnswersThatNeverCome(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.inject("hanging", object{"count": 1})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "DELETE", m.url+inRegion+"/servers/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	eventually(t, "the call is carried out", func() bool { return m.cloud.Servers()[0].Status == "DELETING" })
	m.clock.Step(24 * time.Hour)
	select {
	case err := <-ended:
		t.Errorf("ended with %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	eventually(t, "the call is written down", func() bool { return m.cloud.CallCounts()["DeleteServer"] == 1 })
}

func TestTokensOfPresets(t *testing.T) {
	for preset, want := range map[string]int{"token-down": 503, "token-404": 404} {
		t.Run(preset, func(t *testing.T) {
			m := newMock(t)
			m.inject(preset, object{"count": 1})
			if got := m.status("POST", "/token", nil); got != want {
				t.Errorf("answered %d, want %d", got, want)
			}
			m.login(iaasmock.DefaultProjectID)
			m.list("/servers")
		})
	}
	m := newMock(t)
	claims := func() jwt.MapClaims {
		m.login(iaasmock.DefaultProjectID)
		claims := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(m.token, claims); err != nil {
			t.Fatal(err)
		}
		return claims
	}
	inTime := func(preset string) {
		t.Helper()
		m.list("/servers")
		m.clock.Step(time.Hour - time.Second)
		m.list("/servers")
		m.clock.Step(time.Second)
		if got := m.status("GET", inRegion+"/servers", nil); got != 401 {
			t.Errorf("%s: after its lifetime the token is answered with %d", preset, got)
		}
	}
	m.inject("token-without-exp", object{"count": 1})
	if exp, ok := claims()["exp"]; ok {
		t.Errorf("the token expires at %v", exp)
	}
	inTime("token-without-exp")

	m.inject("token-skew", object{"count": 1})
	now := m.clock.Now()
	if exp := claims()["exp"]; exp != float64(now.Add(-time.Hour).Unix()) {
		t.Errorf("two hours late it is %v, exp is %v", now.Unix(), exp)
	}
	inTime("token-skew")

	m.inject("token-skew", object{"tokenSkew": "2h"})
	_, key := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	if status, answer := m.exchange(jwtBearer, assertion(t, m, key, nil)); status != 401 {
		t.Errorf("by a clock two hours ahead an assertion for an hour is accepted: %d %v", status, answer)
	}
}
