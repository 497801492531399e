// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// status of a call; 0 if its connection was lost.
func (m *mock) status(method, path string, body any) int {
	m.t.Helper()
	response, _, err := m.try(method, path, body)
	if err != nil {
		return 0
	}
	return response.StatusCode
}

func TestFaultsForOneServer(t *testing.T) {
	m := openMock(t)
	labels := object{"app": "a", "tier": "x"}
	id := m.create(object{"name": "m1", "labels": labels})
	other := m.create(object{"name": "m2", "labels": object{"app": "b"}})
	nic := m.server(id).NICIDs[0]
	otherNIC := m.server(other).NICIDs[0]
	calls := []struct {
		name, method, path string
		body               any
		hit                bool
	}{
		{"creating it", "POST", "/servers", serverBody(object{"name": "m1", "labels": labels}), true},
		{"creating another", "POST", "/servers", serverBody(object{"name": "m3", "labels": object{"app": "b"}}), false},
		{"creating garbage", "POST", "/servers", "garbage", false},
		{"reading it", "GET", "/servers/" + id, nil, true},
		{"reading another", "GET", "/servers/" + other, nil, false},
		{"reading one that is not there", "GET", "/servers/" + iaasmock.DefaultVolumeID, nil, false},
		{"its NICs", "GET", "/servers/" + id + "/nics", nil, true},
		{"its NIC", "GET", "/nics/" + nic, nil, true},
		{"its NIC in its network", "GET", "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + nic, nil, true},
		{"another's NIC", "GET", "/nics/" + otherNIC, nil, false},
		{"a free NIC", "GET", "/nics/" + iaasmock.DefaultNICID, nil, false},
		{"a list", "GET", "/servers", nil, false},
		{"a volume", "GET", "/volumes/" + iaasmock.DefaultVolumeID, nil, false},
	}
	for name, row := range map[string]struct {
		fault  iaasmock.Fault
		onlyID bool // no server that is to be made has it
	}{
		"name": {iaasmock.Fault{Server: "m1"}, false},
		"ID":   {iaasmock.Fault{Server: id}, true},
	} {
		t.Run(name, func(t *testing.T) {
			row.fault.Status = http.StatusTeapot
			defer m.cloud.Inject(row.fault)()
			for _, call := range calls {
				want := call.hit && (!row.onlyID || call.method != "POST")
				if got := m.status(call.method, inRegion+call.path, call.body) == http.StatusTeapot; got != want {
					t.Errorf("%s: hit is %t", call.name, got)
				}
			}
		})
	}
}

// Calls below the rate are carried out, those beyond it are hit, with their header.
func TestARateLetsCallsThrough(t *testing.T) {
	m := openMock(t)
	m.inject("rate-limited-creations", object{"header": object{"Retry-After": []any{"3"}}})
	for _, row := range []struct {
		after   time.Duration
		through int
	}{{0, 4}, {time.Second, 2}, {250 * time.Millisecond, 0}, {250 * time.Millisecond, 1}, {time.Hour, 4}} {
		m.clock.Step(row.after)
		got := 0
		for range 10 {
			response, _, err := m.try("POST", inRegion+"/servers", serverBody(nil))
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode == http.StatusCreated {
				got++
			} else if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "3" {
				t.Errorf("beyond the rate: %v", response)
			}
			m.want(200, "GET", inRegion+"/servers", nil)
		}
		if got != row.through {
			t.Errorf("%s later %d calls are let through, want %d", row.after, got, row.through)
		}
	}
	if hits := m.cloud.Faults()[0].Hits; hits != 50-11 {
		t.Errorf("%d hits, want %d", hits, 50-11)
	}
}

func TestFaultsBeginAndEndByTheClock(t *testing.T) {
	m := openMock(t)
	now := m.clock.Now()
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 503, After: 10 * time.Second, Duration: 5 * time.Second})
	active := m.cloud.Faults()[0]
	if !active.StartsAt.Equal(now.Add(10*time.Second)) || !active.EndsAt.Equal(now.Add(15*time.Second)) {
		t.Errorf("it lasts from %s to %s", active.StartsAt, active.EndsAt)
	}
	for _, step := range []struct {
		wait time.Duration
		want int
	}{
		{0, 200}, {10*time.Second - 1, 200}, {1, 503}, {5*time.Second - 1, 503}, {1, 200},
	} {
		m.clock.Step(step.wait)
		if got := m.status("GET", inRegion+"/servers", nil); got != step.want {
			t.Errorf("after %s: %d, want %d", m.clock.Since(now), got, step.want)
		}
	}
	if left := m.cloud.Faults(); len(left) > 0 {
		t.Errorf("left over: %+v", left)
	}
}

func TestSeveralFaults(t *testing.T) {
	m := instantMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, Status: 500})
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, Delay: time.Second})
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 2, Status: 503})
	m.cloud.Inject(iaasmock.Fault{Count: 2, Delay: 2 * time.Second, AnswerDelay: time.Second})
	var got []int
	for range 4 {
		got = append(got, m.status("GET", inRegion+"/servers", nil))
	}
	if diff := cmp.Diff([]int{500, 503, 503, 200}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	var took []time.Duration
	var faults [][]string
	for _, call := range m.cloud.Calls() {
		took, faults = append(took, call.Duration), append(faults, call.Faults)
	}
	if diff := cmp.Diff([]time.Duration{4 * time.Second, 3 * time.Second, 0, 0}, took); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"f1", "f2", "f4"}, {"f3", "f4"}, {"f3"}, nil}, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestOperationsOfFaults(t *testing.T) {
	servers, keypairs, elsewhere, token := inRegion+"/servers", "/v2/keypairs", "/elsewhere", "/token"
	for operation, hit := range map[string][]string{
		iaasmock.OperationIaaS: {servers, keypairs, elsewhere}, "Token": {token}, "Unknown": {elsewhere},
		"ListServers": {servers}, "": {servers, keypairs, elsewhere, token},
	} {
		m := openMock(t)
		m.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusTeapot})
		for _, path := range []string{servers, keypairs, elsewhere, token, "/healthz"} {
			method := map[bool]string{true: "POST", false: "GET"}[path == token]
			if got := m.status(method, path, nil) == http.StatusTeapot; got != slices.Contains(hit, path) {
				t.Errorf("%q: %s is hit: %t", operation, path, got)
			}
		}
	}
}

func TestFaultsThatAreOnlyLikely(t *testing.T) {
	m := openMock(t, iaasmock.WithSeed(1))
	for count, row := range map[int]struct{ least, most int }{0: {80, 120}, 5: {5, 5}} {
		remove := m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 503, Probability: 0.25, Count: count})
		hits := 0
		for range 400 {
			if m.status("GET", inRegion+"/servers", nil) == 503 {
				hits++
			}
		}
		if hits < row.least || hits > row.most {
			t.Errorf("%d of 400 calls were hit, with a count of %d", hits, count)
		}
		remove()
	}
}

func TestInjectRefusesNonsense(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "probability: invalid 2") {
			t.Errorf("panics with %q", text)
		}
	}()
	openMock(t).cloud.Inject(iaasmock.Fault{Status: 500, Probability: 2})
}
