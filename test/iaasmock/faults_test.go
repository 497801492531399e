// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// Each fault hits one CreateServer.
func TestAnswersOfFaults(t *testing.T) {
	for name, row := range map[string]struct {
		fault      iaasmock.Fault
		status     int
		kind, body string // application/json if empty
		made       int    // servers
		err        error
	}{
		"a status": {iaasmock.Fault{Status: 503}, 503, "", `{"code":503,"msg":"Service Unavailable"}`, 0, nil},
		"a page": {iaasmock.Fault{Status: 403, ContentType: "text/html"}, 403, "text/html",
			"<h1>403 Forbidden</h1></center>\r\n<hr><center>nginx<", 0, nil},
		"a gateway that gives up": {iaasmock.Fault{Status: 504, Executed: true, ContentType: "text/plain", Body: "upstream"},
			504, "text/plain", "upstream", 1, nil},
		"a header": {iaasmock.Fault{Header: http.Header{"Retry-After": {"5"}}}, 201, "",
			`"status":"CREATING"`, 1, nil},
		"a lost answer":     {iaasmock.Fault{DropAfter: true}, 0, "", "", 1, syscall.ECONNRESET},
		"a lost request":    {iaasmock.Fault{DropBefore: true}, 0, "", "", 0, syscall.ECONNRESET},
		"half of an answer": {iaasmock.Fault{HalfAnswer: true}, 201, "", `{"availabilityZone":"`, 1, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			m := openMock(t)
			row.fault.Operation, row.fault.Count = "CreateServer", 1
			m.cloud.Inject(row.fault)
			response, body, err := m.try("POST", inRegion+"/servers", serverBody(nil))
			if !errors.Is(err, row.err) || len(m.cloud.Servers()) != row.made {
				t.Fatalf("answered %v %q %v, made %v", response, body, err, m.cloud.Servers())
			}
			call := m.cloud.Calls()[0]
			if call.Status != row.status || row.status == 0 {
				if response != nil || call.Status != row.status {
					t.Errorf("answered %v, noted as %+v", response, call)
				}
				return
			}
			kind := map[bool]string{true: "application/json", false: row.kind}[row.kind == ""]
			got, want := response.Header, row.fault.Header
			if response.StatusCode != row.status || !strings.Contains(string(body), row.body) ||
				got.Get("Content-Type") != kind || got.Get("Retry-After") != want.Get("Retry-After") ||
				got.Get("X-Request-Id") != call.RequestID {
				t.Errorf("answered %v %q, noted as %+v", response, body, call)
			}
			m.create(nil)
		})
	}
}

func TestServersOfFaults(t *testing.T) {
	m := openMock(t)
	inject := func(text string) {
		t.Helper()
		f, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		m.cloud.Inject(f)
	}
	inject(`{"preset":"no-capacity","count":1}`)
	inject(`{"operation":"CreateServer","server":"stuck","neverBoots":true}`)
	inject(`{"operation":"DeleteServer","server":"bad","count":1,"finalStatus":"ERROR","errorMessage":"in vain"}`)
	inject("full-zone")
	full, stuck := m.create(nil), m.create(object{"name": "stuck"})
	bad, other := m.create(object{"name": "bad"}), m.create(object{"availabilityZone": "eu01-1"})
	m.clock.Step(time.Hour)
	for _, id := range []string{full, other} {
		if message, _ := m.wantStatus(id, "ERROR")["errorMessage"].(string); !strings.HasPrefix(message, "No valid host") {
			t.Errorf("errorMessage %v", message)
		}
	}
	m.wantStatus(stuck, "CREATING")
	m.wantStatus(bad, "ACTIVE")

	m.want(204, "DELETE", inRegion+"/servers/"+bad, nil)
	inject(`{"operation":"DeleteServer","count":1,"neverGone":true}`)
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(time.Hour)
	if message := m.wantStatus(bad, "ERROR")["errorMessage"]; message != "in vain" {
		t.Errorf("errorMessage %v", message)
	}
	m.wantStatus(full, "DELETING")
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(remove)
	m.wantStatus(full, "")
}

func TestReadsOfFaults(t *testing.T) {
	m := openMock(t)
	old := m.create(object{"name": "old"})
	m.clock.Step(time.Minute)
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Stale: 30 * time.Second, Duration: time.Minute})
	young := m.create(object{"name": "young", "labels": object{"a": "b"}})
	wantListed := func(query string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, names(m.list("/servers"+query))); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	}
	m.want(204, "DELETE", inRegion+"/servers/"+old, nil)
	m.clock.Step(29 * time.Second) // old is gone since 24 s
	m.wantStatus(old, "")
	m.wantStatus(young, "ACTIVE")
	wantListed("", "old")
	m.clock.Step(time.Minute)
	wantListed("", "young")
	m.create(object{"name": "third"})
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", IgnoreSelector: true, Count: 1})
	wantListed("?label_selector=a", "young", "third")
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: 1, Count: 1})
	wantListed("", "young")
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true, Count: 1})
	if got := m.list("/servers"); len(got) > 0 {
		t.Errorf("an empty list has %v", got)
	}
}

func TestAProjectThatLooksEmpty(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	server := m.server(id)
	m.cloud.Inject(iaasmock.Fault{EmptyProject: true, Duration: 8 * time.Second})
	for _, list := range []string{"/servers", "/networks/" + iaasmock.DefaultNetworkID + "/nics", "/nics", "/volumes"} {
		if listed := m.list(list); len(listed) != 0 {
			t.Errorf("%s lists %v", list, listed)
		}
	}
	for path, message := range map[string]string{
		"/servers/" + id: "server not found", "/servers/" + id + "/nics": "server not found",
		"/nics/" + server.NICIDs[0]: "network interface not found", "/volumes/" + server.BootVolume.ID: "volume not found",
	} {
		if answer := m.want(404, "GET", inRegion+path, nil); answer["msg"] != message {
			t.Errorf("%s answers %v", path, answer)
		}
	}
	m.want(404, "DELETE", inRegion+"/servers/"+id, nil)
	m.create(object{"name": "made-meanwhile"})
	m.clock.Step(8 * time.Second)
	m.wantStatus(id, "CREATING")
	if got := len(m.list("/servers")); got != 2 {
		t.Errorf("%d servers are listed afterwards, want 2", got)
	}
}

// A limit of calls counts all calls of one source together.
func TestEachSourceHasALimitOfItsOwn(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(fault.SourceLimit(2, 4))
	through := func(source string) (count int) {
		for port := range 10 {
			path := []string{"/servers", "/nics", "/volumes"}[port%3]
			request := httptest.NewRequest(http.MethodGet, inRegion+path, http.NoBody)
			request.RemoteAddr = net.JoinHostPort(source, strconv.Itoa(1000+port))
			answer := httptest.NewRecorder()
			m.cloud.ServeHTTP(answer, request)
			if answer.Code == http.StatusOK {
				count++
			}
		}
		return count
	}
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 4}, {time.Second, 2}, {250 * time.Millisecond, 0}, {time.Hour, 4}} {
		m.clock.Step(row.after)
		if one, two := through("192.0.2.1"), through("2001:db8::1"); one != row.want || two != row.want {
			t.Errorf("%s later %d and %d calls pass, want %d", row.after, one, two, row.want)
		}
	}
}

func TestOperationsOfFaults(t *testing.T) {
	servers, quotas, elsewhere, token := inRegion+"/servers", inRegion+"/quotas", "/elsewhere", "/token"
	for operation, hit := range map[string][]string{
		iaasmock.OperationIaaS: {servers, quotas, elsewhere}, "Token": {token}, "Unknown": {elsewhere},
		"ListServers": {servers}, "": {servers, quotas, elsewhere, token},
	} {
		m := openMock(t)
		m.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusTeapot})
		for _, path := range []string{servers, quotas, elsewhere, token, "/healthz"} {
			method := map[bool]string{true: "POST", false: "GET"}[path == token]
			if got := m.status(method, path, nil) == http.StatusTeapot; got != slices.Contains(hit, path) {
				t.Errorf("%q: %s is hit: %t", operation, path, got)
			}
		}
	}
}
