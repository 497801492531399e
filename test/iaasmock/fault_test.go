// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

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
	type answer func(m *mock) (*http.Response, []byte, error)
	create := func(m *mock) (*http.Response, []byte, error) {
		return m.try("POST", inRegion+"/servers", serverBody(nil))
	}
	list := func(m *mock) (*http.Response, []byte, error) { return m.try("GET", inRegion+"/servers", nil) }
	on := func(method string) answer {
		return func(m *mock) (*http.Response, []byte, error) {
			return m.try(method, inRegion+"/servers/"+m.cloud.Servers()[0].ID, nil)
		}
	}
	failure := func(status int, message string) string { return fmt.Sprintf(`{"code":%d,"msg":%q}`, status, message) }
	for preset, row := range map[string]struct {
		call       answer
		status     int
		kind, body string // application/json if empty
		made       int    // servers
		err        error
	}{
		"quota-exceeded":    {call: create, status: 403, body: "Quota exceeded"},
		"bad-request":       {call: create, status: 400, body: failure(400, "The affinity group policy is not supported")},
		"too-large":         {call: create, status: 413, body: failure(413, "Request Entity Too Large")},
		"unauthorized":      {call: list, status: 401, body: failure(401, "Unauthorized")},
		"forbidden":         {call: list, status: 403, body: failure(403, "Forbidden")},
		"random-404":        {call: on("GET"), status: 404, body: failure(404, "server not found")},
		"project-404":       {call: on("GET"), status: 404, body: failure(404, "project not found")},
		"conflict":          {call: on("DELETE"), status: 409, body: failure(409, "Conflict")},
		"rate-limited":      {call: list, status: 429, body: failure(429, "Too Many Requests")},
		"bad-gateway":       {call: list, status: 502, kind: "text/html", body: "<h1>502 Bad Gateway</h1>"},
		"unavailable":       {call: list, status: 503, body: failure(503, "Service Unavailable")},
		"lists-unavailable": {call: list, status: 503, body: failure(503, "Service Unavailable")},
		"gateway-timeout":   {call: create, status: 504, kind: "text/plain", body: "upstream request timeout", made: 1},

		"internal-error-empty":     {call: list, status: 500, kind: "text/plain"},
		"rate-limited-retry-after": {call: list, status: 429, body: failure(429, "Too Many Requests")},

		"lost-answers": {call: create, err: syscall.ECONNRESET, made: 1},
		"reset-before": {call: create, err: syscall.ECONNRESET},
		"half-answers": {call: create, status: 201, err: io.ErrUnexpectedEOF, body: `{"availabilityZone":"`, made: 1},
	} {
		t.Run(preset, func(t *testing.T) {
			m := openMock(t)
			m.create(nil)
			m.inject(preset, object{"count": 1, "probability": 1})
			response, body, err := row.call(m)
			if !errors.Is(err, row.err) {
				t.Fatalf("answered %v %q %v, want %v", response, body, err, row.err)
			}
			calls := m.cloud.Calls()
			if response == nil {
				response = &http.Response{}
			} else if id := response.Header.Get("X-Request-Id"); id != calls[1].RequestID || len(id) != 36 {
				t.Errorf("X-Request-Id is %q", id)
			}
			if response.StatusCode != row.status || calls[1].Status != row.status || !strings.Contains(string(body), row.body) {
				t.Errorf("answered %d %q, noted as %+v", response.StatusCode, body, calls[1])
			}
			kind := cmp.Or(row.kind, "application/json")
			retry := map[bool]string{true: "5"}[preset == "rate-limited-retry-after"]
			header := response.Header
			if row.status != 0 && (header.Get("Content-Type") != kind || header.Get("Retry-After") != retry) {
				t.Errorf("headers %v", header)
			}
			if servers := m.cloud.Servers(); len(servers) != 1+row.made || servers[0].Status != "CREATING" {
				t.Errorf("there are %+v, want %d", servers, 1+row.made)
			}
			if response, body, err := row.call(m); err != nil || response.StatusCode >= 300 {
				t.Errorf("after the fault: %v %s %v", response, body, err)
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

// A call waits for its latency and delay before it is carried out, and for answerDelay after it.
func TestDelays(t *testing.T) {
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		waiting int // servers while the client waits
		takes   time.Duration
	}{
		"before": {iaasmock.Fault{Delay: 2 * time.Second}, 0, 3 * time.Second},
		"after":  {iaasmock.Fault{AnswerDelay: 2 * time.Second}, 1, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := openMock(t, iaasmock.WithLatency(time.Second, time.Second))
			m.cloud.Inject(row.fault)
			answered := make(chan int, 1)
			go func() { answered <- m.status("POST", inRegion+"/servers", serverBody(nil)) }()
			for _, step := range []time.Duration{time.Second - 1, 1, row.takes - time.Second - 1} {
				eventually(t, "the call waits", m.clock.HasWaiters)
				m.clock.Step(step)
				if len(answered) > 0 {
					t.Fatal("answered too early")
				}
			}
			if got := len(m.cloud.Servers()); got != row.waiting {
				t.Errorf("%d servers while the call waits, want %d", got, row.waiting)
			}
			m.clock.Step(1)
			if status := <-answered; status != 201 {
				t.Errorf("answered %d", status)
			}
			if took := m.cloud.Calls()[0].Duration; took != row.takes {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestDelaysAreSpread(t *testing.T) {
	const calls = 300
	m := instantMock(t, iaasmock.WithSeed(7))
	m.cloud.Inject(iaasmock.Fault{Delay: time.Second, DelayMax: 11 * time.Second})
	sum := time.Duration(0)
	for range calls {
		d := m.delayOf("GET", inRegion+"/servers")
		if d < time.Second || d > 11*time.Second {
			t.Fatalf("one call takes %s", d)
		}
		sum += d
	}
	if mean := sum / calls; mean < 5*time.Second || mean > 7*time.Second {
		t.Errorf("the mean is %s, want 5 to 7 s", mean)
	}
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
