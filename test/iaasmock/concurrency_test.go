// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// TestManyClients has clients create, change, list and delete servers at once, some with
// faults, while the test steps the clock and reads the state.
func TestManyClients(t *testing.T) {
	const clients, rounds = 8, 15
	m := openMock(t, iaasmock.WithListLag(time.Second))
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: clients, Status: 500, Header: http.Header{"A": {"b"}}})
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("c%d-r%d", client, round)
				if err := m.serverCycle(name); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			m.clock.Step(100 * time.Millisecond)
			m.readState()
		}
	}
	m.clock.Step(time.Minute)
	if left := m.cloud.Servers(); len(left) > 0 {
		t.Errorf("%d servers are left", len(left))
	}
	if nics, volumes := len(m.cloud.NICs()), len(m.cloud.Volumes()); nics != 1 || volumes != 2 {
		t.Errorf("%d NICs and %d volumes are left, want the catalogue's", nics, volumes)
	}
	if totals := m.cloud.History(); totals.ServersCreated != clients*rounds || totals.ServersDeleted != clients*rounds {
		t.Errorf("history %+v", totals)
	}
	if counts := m.cloud.CallCounts(); counts["CreateServer"] != clients*rounds || counts["ListServers"] != clients*rounds {
		t.Errorf("counts %v", counts)
	}
}

// serverCycle creates a server, a NIC and a volume, changes them and deletes them.
func (m *mock) serverCycle(name string) error {
	nics := "/networks/" + iaasmock.DefaultDualStackNetworkID + "/nics"
	paths := map[string]string{}
	for collection, body := range map[string]object{
		"/servers": serverBody(object{"name": name, "labels": object{"name": name}}),
		"/volumes": {"availabilityZone": "eu01-1", "size": 1}, nics: {},
	} {
		response, raw, err := m.try("POST", inRegion+collection, body)
		var made struct{ ID string }
		if err != nil || response.StatusCode != 201 || json.Unmarshal(raw, &made) != nil {
			return fmt.Errorf("POST %s: %s %w", collection, raw, err)
		}
		paths[collection] = collection + "/" + made.ID
	}
	server := paths["/servers"]
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{"PATCH", paths[nics], object{"name": name}}, {"PATCH", server, object{"labels": object{"touched": "yes"}}},
		{"GET", server + "?details=true", nil}, {"GET", server + "/nics", nil}, {"GET", "/quotas", nil},
		{"GET", "/servers?details=true&label_selector=name%3D" + name, nil},
		{"DELETE", server, nil}, {"DELETE", paths["/volumes"], nil}, {"DELETE", paths[nics], nil},
	} {
		if _, body, err := m.try(call.method, inRegion+call.path, call.body); err != nil {
			return fmt.Errorf("%s %s: %s %w", call.method, call.path, body, err)
		}
	}
	return nil
}

// readState calls the methods that return the state.
func (m *mock) readState() {
	for _, server := range m.cloud.Servers() {
		server.Labels["seen"] = "yes" // a copy
	}
	_, _, _ = m.cloud.NICs(), m.cloud.Volumes(), m.cloud.Calls()
	_, _ = m.cloud.CallCounts(), m.cloud.History()
	removeFault := m.cloud.Inject(iaasmock.Fault{Delay: 1, Server: "nobody", Header: http.Header{"A": {"b"}}})
	for _, fault := range m.cloud.Faults() {
		fault.Header.Set("A", "c") // a copy
	}
	m.status("GET", "/admin/faults", nil)
	removeFault()
}
