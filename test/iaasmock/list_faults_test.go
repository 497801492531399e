// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// shown counts in how many of 40 lists the only server is.
func (m *mock) shown() (times int) {
	m.t.Helper()
	for range 40 {
		times += len(m.list("/servers"))
	}
	return times
}

func TestListsOfReplicasOfDifferentAge(t *testing.T) {
	const young, old = 2 * time.Second, 20 * time.Second
	m := openMock(t, iaasmock.WithListReplicas(young, old), iaasmock.WithSeed(3))
	want := func(when string, least, most int) {
		t.Helper()
		if times := m.shown(); times < least || times > most {
			t.Errorf("%s: %d of 40 lists show the server, want %d to %d", when, times, least, most)
		}
	}
	m.clock.Step(time.Minute)
	id := m.create(nil)
	m.clock.Step(young - time.Nanosecond)
	want("before the younger replica knows it", 0, 0)
	m.clock.Step(time.Nanosecond)
	want("once the younger one knows it", 5, 35)
	m.clock.Step(old - young - time.Nanosecond)
	want("before the older one knows it", 5, 35)
	m.clock.Step(time.Nanosecond)
	want("once both know it", 40, 40)

	if err := m.cloud.RemoveServer(id); err != nil {
		t.Fatal(err)
	}
	want("just gone", 40, 40)
	m.clock.Step(young)
	want("once the younger one knows that it is gone", 5, 35)
	m.clock.Step(old - young)
	want("once both know that it is gone", 0, 0)
}

func TestTheSameSeedTakesTheSameReplicas(t *testing.T) {
	run := func(seed uint64) (counts []int) {
		m := openMock(t, iaasmock.WithListReplicas(0, time.Hour), iaasmock.WithSeed(seed))
		m.create(nil)
		for range 30 {
			counts = append(counts, len(m.list("/servers")))
		}
		return counts
	}
	first := run(42)
	if diff := cmp.Diff(first, run(42)); diff != "" {
		t.Errorf("the same seed does otherwise (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, run(43)) {
		t.Error("another seed does the same")
	}
}

func TestListsAreEmptyByMistake(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.inject("empty-lists", object{"count": 1})
	if listed := m.list("/servers"); len(listed) != 0 {
		t.Errorf("listed are %v", listed)
	}
	m.wantStatus(id, "CREATING") // a GET knows better
	if listed := m.list("/servers"); len(listed) != 1 {
		t.Errorf("listed afterwards are %v", listed)
	}
	m.cloud.Inject(iaasmock.Fault{Operation: "ListNics", EmptyList: true})
	if listed := m.list("/networks/" + iaasmock.DefaultNetworkID + "/nics"); len(listed) != 0 {
		t.Errorf("NICs are listed: %v", listed)
	}
	if refused := m.status("GET", inRegion+"/servers?label_selector=!", nil); refused != http.StatusBadRequest {
		t.Errorf("a malformed list answers %d", refused)
	}
}

func TestListsAreCutOff(t *testing.T) {
	m := openMock(t)
	for range 3 {
		m.create(nil)
	}
	for limit, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3} {
		remove := m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", CutOffAt: limit})
		if listed := m.list("/servers"); len(listed) != want {
			t.Errorf("%d servers are listed with a limit of %d", len(listed), limit)
		}
		remove()
	}
}

func TestListsFailWhileReadsWork(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.inject("lists-unavailable", object{"duration": "1m"})
	if got := m.status("GET", inRegion+"/servers", nil); got != http.StatusServiceUnavailable {
		t.Errorf("a list answers %d", got)
	}
	m.wantStatus(id, "CREATING")
	m.clock.Step(time.Minute)
	m.want(200, "GET", inRegion+"/servers", nil)
}

// Every list, and nothing else, can be empty by mistake.
func TestWhatCanBeEmptyByMistake(t *testing.T) {
	for _, operation := range iaasmock.Operations() {
		err := iaasmock.Fault{Operation: operation, EmptyList: true}.Validate()
		list := strings.HasPrefix(operation, "List") && operation != "ListQuotas" // that is one object
		if list != (err == nil) {
			t.Errorf("%s: %v", operation, err)
		}
	}
}

func TestNullLists(t *testing.T) {
	for name, row := range map[string]struct {
		opts  []iaasmock.Option
		empty string
	}{
		"off": {nil, `{"items":[]}`},
		"on":  {[]iaasmock.Option{iaasmock.WithNullLists()}, `{"items":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := iaasmock.New(append(row.opts, iaasmock.WithoutAuthentication())...)
			list := func(path string) string {
				recorder := httptest.NewRecorder()
				cloud.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
				return strings.TrimSpace(recorder.Body.String())
			}
			for _, path := range []string{inRegion + "/servers", inRegion + "/nics?label_selector=none"} {
				if got := list(path); got != row.empty {
					t.Errorf("%s is %s, want %s", path, got, row.empty)
				}
			}
			if got := list(inRegion + "/networks"); !strings.HasPrefix(got, `{"items":[{`) {
				t.Errorf("a list with something in it is %s", got)
			}
			cloud.Inject(iaasmock.Fault{Operation: "ListNetworks", EmptyList: true})
			if got := list(inRegion + "/networks"); got != row.empty {
				t.Errorf("empty by mistake is %s, want %s", got, row.empty)
			}
		})
	}
}

// A deletion can fail after it was shown.
func TestADeletionFailsAfterItWasShown(t *testing.T) {
	const lag = 3 * time.Second
	m := openMock(t, iaasmock.WithListLag(lag))
	id := m.create(nil)
	m.clock.Step(time.Minute)
	m.inject("delete-error", object{"count": 1})
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.wantStatus(id, "DELETING")
	m.clock.Step(remove - time.Nanosecond)
	m.wantStatus(id, "DELETING")
	m.clock.Step(time.Nanosecond)
	if message := m.wantStatus(id, "ERROR")["errorMessage"]; message != "Failed to detach the volume." {
		t.Errorf("errorMessage is %v", message)
	}
	if got := m.listed(); got != "DELETING" {
		t.Errorf("a list that lags shows it as %v", got)
	}
	m.clock.Step(time.Hour)
	m.wantStatus(id, "ERROR")
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.wantStatus(id, "DELETING")
	m.clock.Step(remove)
	m.wantStatus(id, "")
}
