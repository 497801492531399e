// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"errors"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestFaultAnswers(t *testing.T) {
	for _, row := range []struct {
		name              string
		fault             iaasmock.Fault
		status            int
		contentType, body string
	}{
		{"the API's form", iaasmock.Fault{Status: 503}, 503, "application/json", `{"code":503,"msg":"Service Unavailable"}` + "\n"},
		{"a body", iaasmock.Fault{Status: 403, Body: `{"code":403,"msg":"Quota exceeded for cores"}`}, 403, "application/json", `{"code":403,"msg":"Quota exceeded for cores"}`},
		{"a gateway's HTML", iaasmock.Fault{Status: 502, ContentType: "text/html", Body: "<html>"}, 502, "text/html", "<html>"},
		{"an empty body", iaasmock.Fault{Status: 500, ContentType: "text/plain"}, 500, "text/plain", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			row.fault.Operation = "CreateServer"
			row.fault.Header = http.Header{"Retry-After": {"7"}}
			m.cloud.Inject(row.fault)
			response, body, err := m.try("POST", inRegion+"/servers", serverBody(nil))
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != row.status || string(body) != row.body ||
				response.Header.Get("Content-Type") != row.contentType || response.Header.Get("Retry-After") != "7" {
				t.Errorf("answered %d %q %v", response.StatusCode, body, response.Header)
			}
			if id := response.Header.Get("X-Request-Id"); !strings.HasPrefix(id, "req-") || len(id) != 36 {
				t.Errorf("X-Request-Id is %q", id)
			}
			if len(m.cloud.Servers()) > 0 {
				t.Error("the server was made")
			}
			m.list("/servers") // other operations are not hit
		})
	}
}

func TestFaultCountMatchAndRemove(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 2, Status: 429})
	m.want(429, "GET", inRegion+"/servers", nil)
	m.want(429, "GET", inRegion+"/servers", nil)
	m.list("/servers")

	removeFault := m.cloud.Inject(iaasmock.Fault{
		Status: 500, Match: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/networks") },
	})
	for range 3 {
		m.want(500, "GET", inRegion+"/networks", nil)
	}
	m.list("/servers")
	removeFault()
	removeFault()
	m.list("/networks")

	m.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: 404, Count: 1})
	m.want(404, "POST", "/token", nil)
	m.cloud.Inject(iaasmock.Fault{Operation: "Unknown", Status: 418, Count: 1})
	m.want(418, "GET", "/elsewhere", nil)
}

func TestDroppedConnections(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault iaasmock.Fault
		made  int
	}{
		{"before", iaasmock.Fault{DropBefore: true}, 0},
		{"after", iaasmock.Fault{DropAfter: true}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			row.fault.Operation, row.fault.Count = "CreateServer", 1
			m.cloud.Inject(row.fault)
			response, body, err := m.try("POST", inRegion+"/servers", serverBody(nil))
			if err == nil {
				t.Errorf("answered %d %s", response.StatusCode, body)
			}
			if !errors.Is(err, syscall.ECONNRESET) { // an end of file could be an idle connection's
				t.Errorf("not reset: %v", err)
			}
			if got := len(m.cloud.Servers()); got != row.made {
				t.Errorf("%d servers, want %d", got, row.made)
			}
			calls := m.cloud.Calls()
			if len(calls) != 1 || calls[0].Operation != "CreateServer" || calls[0].Status != 0 {
				t.Errorf("calls %+v", calls)
			}
		})
	}
}

func TestExecutedAllTheSame(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Executed: true, Status: 504, ContentType: "text/html", Body: "<html>"})
	response, _, err := m.try("POST", inRegion+"/servers", serverBody(nil))
	if err != nil || response.StatusCode != 504 || len(m.cloud.Servers()) != 1 {
		t.Errorf("%v %v with %d servers", response, err, len(m.cloud.Servers()))
	}
}

func TestServersThatFail(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: "ERROR", ErrorMessage: "No valid host was found."})
	broken := m.create(nil)
	m.wantStatus(broken, "CREATING")
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, NeverBoots: true})
	stuck := m.create(nil)
	good := m.create(nil)
	m.clock.Step(100 * boot)
	if got := m.wantStatus(broken, "ERROR")["errorMessage"]; got != "No valid host was found." {
		t.Errorf("errorMessage is %v", got)
	}
	m.wantStatus(stuck, "CREATING")
	m.wantStatus(good, "ACTIVE")

	m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, NeverGone: true})
	m.want(204, "DELETE", inRegion+"/servers/"+stuck, nil)
	m.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, FinalStatus: "ERROR", ErrorMessage: "detach failed"})
	m.want(204, "DELETE", inRegion+"/servers/"+good, nil)
	m.wantStatus(good, "DELETING")
	m.clock.Step(100 * remove)
	m.wantStatus(stuck, "DELETING")
	m.wantStatus(good, "ERROR")
	for _, id := range []string{broken, stuck, good} {
		m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	}
	m.clock.Step(remove)
	for _, id := range []string{broken, stuck, good} {
		m.wantStatus(id, "")
	}
}

func TestDelayAndLatency(t *testing.T) {
	m := openMock(t, iaasmock.WithLatency(time.Second, time.Second))
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Delay: 2 * time.Second, Count: 1})
	answered := make(chan int, 1)
	go func() {
		response, _, err := m.try("POST", inRegion+"/servers", serverBody(nil))
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		answered <- response.StatusCode
	}()
	for !m.clock.HasWaiters() { // the call is on its way
		runtime.Gosched()
	}
	m.clock.Step(3*time.Second - time.Nanosecond)
	select {
	case <-answered:
		t.Fatal("answered too early")
	default:
	}
	if got := len(m.cloud.Servers()); got != 0 {
		t.Errorf("%d servers while the call waits", got)
	}
	m.clock.Step(time.Nanosecond)
	if status := <-answered; status != 201 {
		t.Errorf("answered %d", status)
	}
	if call := m.cloud.Calls()[0]; call.Duration != 3*time.Second {
		t.Errorf("it took %s", call.Duration)
	}
}

func TestAnswerDelayHoldsBackOnlyTheAnswer(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", AnswerDelay: time.Second, Count: 1})
	answered := make(chan error, 1)
	go func() {
		_, _, err := m.try("POST", inRegion+"/servers", serverBody(nil))
		answered <- err
	}()
	for !m.clock.HasWaiters() {
		runtime.Gosched()
	}
	if got := len(m.cloud.Servers()); got != 1 {
		t.Errorf("%d servers while the answer waits, want 1", got)
	}
	m.clock.Step(time.Second)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// The example says what happens when; here it does.
func TestExampleScenario(t *testing.T) {
	text, err := os.ReadFile("testdata/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	faults, err := iaasmock.ParseScenario(text)
	if err != nil {
		t.Fatal(err)
	}
	m := instantMock(t, iaasmock.WithSeed(1))
	for _, fault := range faults {
		m.cloud.Inject(fault)
	}
	began := m.clock.Now()
	for i := range 4 {
		id := m.create(object{"labels": object{"pool": "canary"}})
		m.clock.Step(boot)
		want := "ERROR"
		if i == 3 {
			want = "ACTIVE"
		}
		if got := m.server(id).Status; got != want {
			t.Errorf("server %d is %s, want %s", i, got, want)
		}
	}
	at := func(since time.Duration) { m.clock.SetTime(began.Add(since)) }
	at(2*time.Minute + 10*time.Second)
	if took := m.delayOf("GET", inRegion+"/networks"); took < 2*time.Second {
		t.Errorf("in the brown-out a call takes %s", took)
	}
	at(4*time.Minute + 10*time.Second)
	if took, status := m.delayOf("GET", inRegion+"/networks"), m.status("POST", "/token", nil); took != 0 || status != 503 {
		t.Errorf("after the brown-out a call takes %s; the token endpoint answers %d", took, status)
	}
	at(5*time.Minute + 10*time.Second)
	limited := 0
	for range 40 {
		if m.status("GET", inRegion+"/networks", nil) == 429 {
			limited++
		}
	}
	if limited < 10 || limited > 30 {
		t.Errorf("%d of 40 calls are limited, want about half", limited)
	}
	at(7*time.Minute + time.Second)
	m.list("/networks")
	if left := m.cloud.Faults(); len(left) != 1 || left[0].Name != "random-404" {
		t.Errorf("left over: %+v", left)
	}
}
