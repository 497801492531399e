// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
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
	const tooMany = `{"status":429,"error":"Too Many Requests","message":"rate limit on IP level exceeded; ` +
		`please try again later"}`
	failure := func(status int, message string) string { return fmt.Sprintf(`{"code":%d,"msg":%q}`, status, message) }
	for preset, row := range map[string]struct {
		call       func(m *mock) (*http.Response, []byte, error)
		status     int
		kind, body string // application/json if empty
		made       int    // servers
		err        error
	}{
		"quota-exceeded": {call: create, status: 403, body: "Quota exceeded"},
		"bad-request":    {call: create, status: 400, body: failure(400, "The affinity group policy is not supported")},
		"random-404":     {call: read, status: 404, body: failure(404, "server not found")},
		"project-404":    {call: list, status: 404, body: failure(404, "project not found")},
		"bad-gateway":    {call: list, status: 502, kind: "text/html", body: "<h1>502 Bad Gateway</h1>"},
		"gateway-page": {call: list, status: 403, kind: "text/html",
			body: "<h1>403 Forbidden</h1></center>\r\n<hr><center>nginx<"},
		"gateway-jwks": {call: list, status: 401, kind: "text/plain",
			body: "Jwks doesn't have key to match kid or alg from Jwt"},
		"gateway-reset":   {call: list, status: 503, kind: "text/plain", body: "reset reason: connection termination"},
		"rate-limited":    {call: create, status: 429, body: tooMany},
		"unavailable":     {call: list, status: 503, body: failure(503, "Service Unavailable")},
		"gateway-timeout": {call: create, status: 504, kind: "text/plain", body: "upstream request timeout", made: 1},

		"forbidden-path": {call: list, status: 403,
			body: `"path":"/v2/projects","status":403,"error":"Forbidden","message":"Un`},
		"internal-error-empty":     {call: list, status: 500, kind: "text/plain"},
		"rate-limited-retry-after": {call: list, status: 429, body: tooMany},

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
			kind := row.kind
			if kind == "" {
				kind = "application/json"
			}
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

func TestPagesOfAGateway(t *testing.T) {
	for _, status := range []int{200, 400, 401, 403, 404, 409, 500, 502, 503} {
		m := openMock(t)
		m.inject("gateway-page", object{"status": status})
		response, body, err := m.try("POST", inRegion+"/servers", serverBody(nil))
		if err != nil {
			t.Fatal(err)
		}
		title := fmt.Sprintf("<title>%d %s</title>", status, http.StatusText(status))
		if response.StatusCode != status || !strings.Contains(string(body), title) || len(m.cloud.Servers()) > 0 {
			t.Errorf("%d: answered %s %s", status, response.Status, body)
		}
	}
}

// A source's calls are counted together, whatever they are.
func TestRateLimitOfASource(t *testing.T) {
	m := openMock(t)
	m.inject("rate-limited-source", nil)
	paths := []string{"/servers", "/nics", "/volumes", "/networks"}
	refused := func() (refused int) {
		for i := range 30 {
			if m.status("GET", inRegion+paths[i%len(paths)], nil) == 429 {
				refused++
			}
		}
		return refused
	}
	if got := refused(); got != 10 {
		t.Errorf("of 30 calls at once %d are refused, want 10", got)
	}
	m.clock.Step(time.Second)
	if got := refused(); got != 20 {
		t.Errorf("of 30 calls a second later %d are refused, want 20", got)
	}
}

func TestEachSourceHasALimitOfItsOwn(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	cloud.Inject(fault.SourceLimit(1, 1))
	for source, want := range map[string][]int{"192.0.2.1": {200, 429, 429}, "2001:db8::1": {200, 429}} {
		for port, code := range want {
			request := httptest.NewRequest(http.MethodGet, inRegion+"/servers", http.NoBody)
			request.RemoteAddr = net.JoinHostPort(source, strconv.Itoa(1000+port))
			answer := httptest.NewRecorder()
			cloud.ServeHTTP(answer, request)
			if answer.Code != code {
				t.Errorf("call %d of %s: %d, want %d", port, source, answer.Code, code)
			}
		}
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

func TestTokensOfPresets(t *testing.T) {
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
		m.clock.Step(10*time.Minute - time.Second)
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
	if exp := claims()["exp"]; exp != float64(now.Add(-110*time.Minute).Unix()) {
		t.Errorf("two hours late it is %v, exp is %v", now.Unix(), exp)
	}
	inTime("token-skew")

	m.inject("token-skew", object{"tokenSkew": "2h"})
	_, key := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	if status, answer := m.exchange(tokenPath, jwtBearer, assertion(t, m, key, nil)); status != 400 {
		t.Errorf("by a clock two hours ahead an assertion for an hour is accepted: %d %v", status, answer)
	}
}

func TestServersOfPresets(t *testing.T) {
	m := openMock(t)
	m.inject("wrong-server", object{"count": 1}) // there is no other server to show
	if lone := m.server(m.create(object{"name": "lone"})); lone.Name != "lone" {
		t.Errorf("the answer shows %+v", lone)
	}
	m.inject("no-capacity", object{"count": 1})
	m.inject("boot-error", object{"server": "broken"})
	m.inject("stuck-creating", object{"server": "stuck"})
	m.inject("delete-error", object{"server": "bad"})
	full, broken := m.create(nil), m.create(object{"name": "broken"})
	stuck, good := m.create(object{"name": "stuck"}), m.create(object{"name": "bad"})
	m.clock.Step(time.Hour)
	for id, want := range map[string]string{full: "No valid host was found. There are",
		broken: "Build of instance aborted"} {
		if message, _ := m.wantStatus(id, "ERROR")["errorMessage"].(string); !strings.HasPrefix(message, want) {
			t.Errorf("errorMessage %v", message)
		}
	}
	m.wantStatus(stuck, "CREATING")
	m.wantStatus(good, "ACTIVE")

	m.want(204, "DELETE", inRegion+"/servers/"+good, nil)
	m.inject("stuck-deleting", object{"count": 1})
	m.want(204, "DELETE", inRegion+"/servers/"+full, nil)
	m.clock.Step(time.Hour)
	if message := m.wantStatus(good, "ERROR")["errorMessage"]; message != "Failed to detach the volume." {
		t.Errorf("errorMessage %v", message)
	}
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
	if len(servers) != 2 || servers[0].ID != id || servers[1].ID == id {
		t.Fatalf("there are %+v", servers)
	}
	if twin := servers[1]; twin.Name != "twin" || twin.Labels["a"] != "b" {
		t.Errorf("the second is %+v", twin)
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

func TestAProjectThatLooksEmpty(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	server := m.server(id)
	nic, volume := server.NICIDs[0], server.BootVolume.ID
	nics := "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	m.inject("empty-project", nil)
	for _, list := range []string{"/servers", nics, "/nics", "/volumes"} {
		if listed := m.list(list); len(listed) != 0 {
			t.Errorf("%s lists %v", list, listed)
		}
	}
	for path, body := range map[string]string{
		"/servers/" + id: "server not found", "/servers/" + id + "/nics": "server not found",
		nics + "/" + nic: "network interface not found", "/volumes/" + volume: "volume not found",
	} {
		response, raw, err := m.try("GET", inRegion+path, nil)
		if err != nil || response.StatusCode != 404 || string(raw) != `{"code":404,"msg":"`+body+`"}`+"\n" {
			t.Errorf("%s answers %v %s %v", path, response, raw, err)
		}
	}
	m.want(404, "DELETE", inRegion+"/servers/"+id, nil)
	m.want(400, "GET", inRegion+"/servers?label_selector=!", nil)
	if networks := m.list("/networks"); len(networks) == 0 {
		t.Error("there are no networks")
	}
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: 503, Count: 1})
	m.want(503, "POST", inRegion+"/servers", serverBody(nil)) // not hidden by the other fault
	m.create(object{"name": "made-meanwhile"})
	m.clock.Step(8 * time.Second)
	m.wantStatus(id, "CREATING")
	if got := len(m.list("/servers")); got != 2 {
		t.Errorf("%d servers are listed afterwards, want 2", got)
	}
	if got := m.cloud.Faults(); len(got) != 0 {
		t.Errorf("faults are left: %+v", got)
	}
}

// What the suite for a real project has to find: a boot volume that the API names and keeps, and
// lists that ignore their selectors.
func TestWhatAnAPIMayDo(t *testing.T) {
	m := openMock(t)
	m.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", OwnBootVolume: true})
	id := m.create(object{"name": "a", "labels": object{"a": "b"}})
	volume := m.server(id).BootVolume.ID
	if listed := m.list("/volumes?label_selector=a"); len(listed) != 0 {
		t.Errorf("volumes with the label: %v", listed)
	}
	m.cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", IgnoreSelector: true})
	if listed := m.list("/volumes?label_selector=a"); len(listed) != 3 {
		t.Errorf("volumes without regard to the label: %v", listed)
	}
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove)
	if left, ok := m.volume(volume); !ok || left.Name == "" || left.Status != iaasmock.VolumeAvailable {
		t.Errorf("left is %+v", left)
	}
}

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
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 503, After: 10 * time.Second,
		Duration: 5 * time.Second})
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

// randomRun returns the random results of 60 calls: delays, statuses, IDs.
func randomRun(t *testing.T, seed uint64) []string {
	t.Helper()
	m := instantMock(t, iaasmock.WithSeed(seed), iaasmock.WithLatency(0, time.Second),
		iaasmock.WithBootSpread(2*time.Minute), iaasmock.WithListReplicas(0, time.Hour))
	if got := m.cloud.Seed(); got != seed {
		t.Errorf("the seed is %d, want %d", got, seed)
	}
	m.inject("unavailable", object{"operation": "ListServers", "probability": 0.5})
	m.inject("no-capacity", object{"probability": 0.5})
	m.inject("brown-out", object{"operation": "CreateServer", "probability": 0.5, "duration": "24h"})
	var results []string
	for range 30 {
		_, listed, err := m.try("GET", inRegion+"/servers", nil)
		if err != nil {
			t.Fatal(err)
		}
		last := func() iaasmock.Call { return m.cloud.Calls()[len(m.cloud.Calls())-1] }
		results = append(results, fmt.Sprint(last().Duration, last().Status, strings.Count(string(listed), `"name"`)))
		_, raw, err := m.try("POST", inRegion+"/servers", serverBody(nil))
		if err != nil {
			t.Fatal(err)
		}
		var made struct{ ID string }
		if err := json.Unmarshal(raw, &made); err != nil {
			t.Fatal(err)
		}
		m.clock.Step(time.Minute)
		server := m.server(made.ID)
		mac := m.cloud.NICs()[1].MAC
		results = append(results, fmt.Sprint(last().Duration, last().RequestID, made.ID, server.Status, mac))
	}
	return results
}

func TestSameSeedRepeatsARun(t *testing.T) {
	first, second, third := randomRun(t, 42), randomRun(t, 42), randomRun(t, 43)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same seed gives other results (-first +second):\n%s", diff)
	}
	for i := range first {
		if first[i] == third[i] {
			t.Errorf("another seed gives the same result: %s", first[i])
		}
	}
	if one, other := iaasmock.New(), iaasmock.New(); one.Seed() == other.Seed() {
		t.Error("two clouds without a seed have the same")
	}
}

// Which calls a fault hits must not change with calls that it is not for, and
// faults must not all hit at once.
func TestFaultsHitIndependently(t *testing.T) {
	run := func(others bool) (hits, otherHits []int) {
		m := openMock(t, iaasmock.WithSeed(42))
		m.inject("unavailable", object{"operation": "ListServers", "probability": 0.3})
		m.inject("unavailable", object{"operation": "ListNetworks", "probability": 0.3})
		for range 50 {
			hits = append(hits, m.status("GET", inRegion+"/servers", nil))
			if others {
				otherHits = append(otherHits, m.status("GET", inRegion+"/networks", nil))
			}
		}
		return hits, otherHits
	}
	alone, _ := run(false)
	together, others := run(true)
	if diff := cmp.Diff(alone, together); diff != "" {
		t.Errorf("other calls change it (-alone +together):\n%s", diff)
	}
	if cmp.Equal(together, others) {
		t.Error("two faults always hit together")
	}
}
