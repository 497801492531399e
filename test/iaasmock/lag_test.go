// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// listed is the status that a list shows of the only server.
func (m *mock) listed() any {
	m.t.Helper()
	servers := m.list("/servers")
	if len(servers) != 1 {
		m.t.Fatalf("%d servers are listed", len(servers))
	}
	return servers[0].(object)["status"]
}

// A list that lags shows what was true then, whatever happened since.
func TestLaggingListsShowThePast(t *testing.T) {
	const lag = 3 * time.Second
	for _, row := range []struct {
		name           string
		before, change func(m *mock, id string)
		then, now      string
	}{
		{
			name: "set by hand", change: func(m *mock, id string) { m.set(id, "ERROR") },
			then: "ACTIVE", now: "ERROR",
		},
		{
			name:   "set by hand twice",
			before: func(m *mock, id string) { m.set(id, "INACTIVE") }, change: func(m *mock, id string) { m.set(id, "ERROR") },
			then: "INACTIVE", now: "ERROR",
		},
		{
			name:   "set by hand while deleting",
			before: func(m *mock, id string) { m.want(204, "DELETE", inRegion+"/servers/"+id, nil) },
			change: func(m *mock, id string) { m.set(id, "ERROR") },
			then:   "DELETING", now: "ERROR",
		},
		{
			name:   "deleted again after a failure",
			before: func(m *mock, id string) { m.set(id, "ERROR") },
			change: func(m *mock, id string) { m.want(204, "DELETE", inRegion+"/servers/"+id, nil) },
			then:   "ERROR", now: "DELETING",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t, iaasmock.WithListLag(lag))
			id := m.create(nil)
			m.clock.Step(boot)
			if row.before != nil {
				row.before(m, id)
			}
			m.clock.Step(lag)
			row.change(m, id)
			m.wantStatus(id, row.now)
			if got := m.listed(); got != row.then {
				t.Errorf("listed at once as %v, want %s", got, row.then)
			}
			m.clock.Step(lag - time.Nanosecond)
			if got := m.listed(); got != row.then {
				t.Errorf("listed just before the lag is over as %v, want %s", got, row.then)
			}
			m.clock.Step(time.Nanosecond)
			if got := m.listed(); got != row.now {
				t.Errorf("listed after the lag as %v, want %s", got, row.now)
			}
		})
	}
}

func TestLaggingListsKeepTheOrder(t *testing.T) {
	const lag = 3 * time.Second
	m := openMock(t, iaasmock.WithListLag(lag))
	gone := m.create(object{"name": "a"})
	m.create(object{"name": "b"})
	m.clock.Step(lag)
	if err := m.cloud.RemoveServer(gone); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("not in order of creation (-want +got):\n%s", diff)
	}
}

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
