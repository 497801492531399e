// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
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
	m.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: clients, Status: 500})
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

// serverCycle creates a server, reads and changes it and deletes it.
func (m *mock) serverCycle(name string) error {
	response, body, err := m.try("POST", inRegion+"/servers", serverBody(object{"name": name, "labels": object{"name": name}}))
	if err != nil || response.StatusCode != 201 {
		return fmt.Errorf("create: %s %w", body, err)
	}
	var server struct{ ID string }
	if err := json.Unmarshal(body, &server); err != nil {
		return err
	}
	path := inRegion + "/servers/" + server.ID
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{"GET", path + "?details=true", nil}, {"PATCH", path, object{"labels": object{"touched": "yes"}}},
		{"GET", inRegion + "/servers?details=true&label_selector=name%3D" + name, nil}, {"GET", path + "/nics", nil},
		{"DELETE", path, nil},
	} {
		if _, body, err := m.try(call.method, call.path, call.body); err != nil {
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
}
