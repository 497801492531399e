// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// oldRun is a run that is over.
const oldRun = "20200101-000000-abcd"

// quickOptions are those of a sweep of a mock.
func quickOptions(s settings) *options {
	return &options{
		settings: s, out: io.Discard, limit: 10 * time.Minute, patience: 5 * time.Minute,
		settle: 50 * time.Millisecond, poll: 5 * time.Millisecond,
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	const server = prefix + oldRun + "-first"
	for name, row := range map[string]struct {
		// make makes what the run has left in its network.
		make func(t *testing.T, m *mock, s *sweep, network string)
		// deleted are the kinds of what is deleted, left those of what stays besides the network.
		deleted, left string
		// reason is in the error if the network stays.
		reason string
	}{
		"a server": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.makeServer(t, server, network, "")
		}, "server", "", ""},
		"two networks of the name": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.makeServer(t, server, network, "")
			m.makeServer(t, server, m.makeNetwork(t, networkName(oldRun)), "")
		}, "server server", "", ""},
		"a volume that the API keeps": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.fault(t, keepsVolumes)
			m.makeServer(t, server, network, "")
		}, "server volume", "", ""},
		"a NIC that was noted": {func(t *testing.T, m *mock, s *sweep, network string) {
			s.add(thing{kind: kindNIC, id: m.makeNIC(t, network, "any"), network: network})
		}, "NIC", "", ""},
		"lost answers, outages and refusals": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.makeServer(t, server, network, "")
			m.fault(t, `{"operation":"DeleteServer","dropAfter":true,"count":1}`)
			m.fault(t, `{"operation":"DeleteServer","status":409,"count":1}`)
			m.fault(t, `{"operation":"ListServers","status":500,"count":2}`)
			m.fault(t, `{"operation":"DeleteNetwork","status":409,"count":1}`)
		}, "server", "", ""},
		"empty answers in place of a list": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.fault(t, keepsVolumes)
			m.fault(t, `{"operation":"ListVolumes","status":204,"count":8}`)
			m.makeServer(t, server, network, "")
		}, "server volume", "", ""},
		"another user's NIC": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.makeServer(t, server, network, "")
			m.makeNIC(t, network, "database")
		}, "server", "NIC", "used by resources of others: NIC "},
		"another user's server": {func(t *testing.T, m *mock, _ *sweep, network string) {
			m.makeServer(t, "database", network, "")
		}, "", "server NIC volume", "used by resources of others: server "},
		"a NIC of the run on another user's server": {func(t *testing.T, m *mock, s *sweep, network string) {
			nic := m.makeNIC(t, network, "any")
			s.add(thing{kind: kindNIC, id: nic, network: network})
			m.makeServer(t, "database", network, nic)
		}, "", "server NIC volume", "used by resources of others: server "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t, iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(50*time.Millisecond))
			// Names of the run do not make it the run's.
			m.makeServer(t, server, iaasmock.DefaultNetworkID, "")
			before := m.ids()
			s := quickOptions(m.settings).newSweep(m.project, oldRun)
			row.make(t, m, s, m.makeNetwork(t, networkName(oldRun)))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			deleted, err := s.finish(ctx)
			if kinds(deleted) != row.deleted {
				t.Errorf("deleted %s", texts(deleted))
			}
			if row.left == "" {
				if err != nil || len(s.last) > 0 {
					t.Errorf("%v, %q", err, s.last)
				}
				m.expectOnly(t, before)
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.reason) || !strings.Contains(s.last[0], "LEFT: network ") {
				t.Errorf("%v, %q", err, s.last)
			}
			m.expectOnlyAfter(t, before, row.left+" network")
		})
	}
}

// expectOnlyAfter expects one resource of each kind more than before.
func (m *mock) expectOnlyAfter(t *testing.T, before map[string]bool, wanted string) {
	t.Helper()
	var kinds []string
	for id := range m.ids() {
		if kind, _, _ := strings.Cut(id, " "); !before[id] {
			kinds = append(kinds, kind)
		}
	}
	want := strings.Fields(wanted)
	slices.Sort(kinds)
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Errorf("left are %v, want %v", kinds, want)
	}
}

func kinds(things []thing) string {
	var all []string
	for _, t := range things {
		all = append(all, t.kind)
	}
	return strings.Join(all, " ")
}

// Runs of less than an hour ago are swept only by their name.
func TestSweepOfRunsByAge(t *testing.T) {
	t.Parallel()
	m := newMock(t, iaasmock.WithDeleteDuration(0))
	m.makeNetwork(t, prefix+"prod")
	before := m.ids()
	young := newRunName(time.Now())
	network := m.makeNetwork(t, networkName(young))
	m.makeServer(t, prefix+oldRun+"-first", m.makeNetwork(t, networkName(oldRun)), "")
	o := quickOptions(m.settings)
	if err := o.sweepRuns(t.Context()); err != nil {
		t.Fatal(err)
	}
	before["network "+network] = true
	m.expectOnly(t, before)
	o.settings.sweepRun = young
	if err := o.sweepRuns(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(before, "network "+network)
	m.expectOnly(t, before)
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		networkName(oldRun): true, namesBegin(oldRun) + "first": true,
		networkName(oldRun) + "x": false, "x" + networkName(oldRun): false, prefix + "by-hand": false, prefix: false,
		networkName("prod"): false, "shoot--prod--workers-" + oldRun: false, networkName("20200101-000000-ABCD"): false,
	} {
		if got, ok := runOf(name); ok != want || ok && got != oldRun {
			t.Errorf("%s: run %q, %t", name, got, ok)
		}
	}
	now := time.Now()
	run := newRunName(now)
	if !isRunName(run) || isRunName(run+"-2") || isRunName("prod") || run == newRunName(now) {
		t.Error(run)
	}
	if isOld(run, now.Add(oldAfter-time.Minute)) || !isOld(run, now.Add(oldAfter+time.Minute)) || isOld("prod", now) {
		t.Error("the age of a run is that of its name")
	}
}
