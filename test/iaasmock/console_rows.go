// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"
)

// streamedCalls bounds an event: who wants all calls asks /admin/calls.
const streamedCalls = 100

// consoleEvent is what changed. A snapshot is a change from nothing.
type consoleEvent struct {
	// Now is the cloud's time.
	Now time.Time `json:"now"`
	// Servers are new or changed, Gone are the IDs of those that are no more.
	Servers []serverRow `json:"servers,omitempty"`
	Gone    []string    `json:"gone,omitempty"`
	// Calls are new, the oldest first.
	Calls    []Call    `json:"calls,omitempty"`
	Counters *counters `json:"counters,omitempty"`
	// Faults are all that are active.
	Faults json.RawMessage `json:"faults,omitempty"`
}

// counters are sent whole when one of them has changed.
type counters struct {
	// Calls are how many there were of each operation, CallsTotal all of them,
	// also those before a ResetCalls.
	Calls      map[string]int `json:"calls"`
	CallsTotal int            `json:"callsTotal"`
	NICs       int            `json:"nics"`
	Volumes    int            `json:"volumes"`
	History    Totals         `json:"history"`
}

// serverRow is what a list shows of a server.
type serverRow struct {
	rowFields
	Labels map[string]string `json:"labels"`
}

// rowFields can be compared.
type rowFields struct {
	ID               string `json:"id"`
	Number           int    `json:"number"`
	ProjectID        string `json:"projectId"`
	Region           string `json:"region"`
	Name             string `json:"name"`
	Status           string `json:"status"`
	PowerStatus      string `json:"powerStatus"`
	ErrorMessage     string `json:"errorMessage,omitempty"`
	MachineType      string `json:"machineType"`
	AvailabilityZone string `json:"availabilityZone"`
	// Address is the first NIC's, IPv4 if it has one.
	Address string `json:"address,omitempty"`
	// CreatedAt is in Unix milliseconds: times do not compare with ==.
	CreatedAt int64 `json:"createdAt"`
	// UpdatedAt likewise.
	UpdatedAt int64 `json:"updatedAt"`
}

// told is what a stream's client knows.
type told struct {
	servers  map[string]serverRow
	counters counters
	faults   json.RawMessage
	started  bool
}

// watch returns what the client does not know yet, and takes it as told. The
// first time there is always something, if only that there is nothing.
func (c *Cloud) watch(t *told) (event consoleEvent, changed bool) {
	if t.servers == nil {
		t.servers = map[string]serverRow{}
	}
	event.Now = c.clock.Now()
	rows, now := c.sample()
	for _, row := range rows {
		if known, ok := t.servers[row.ID]; !ok || !known.equal(row) {
			event.Servers = append(event.Servers, row)
			t.servers[row.ID] = row
		}
	}
	if len(t.servers) > len(rows) {
		event.Gone = t.forget(rows)
	}
	event.Calls, now.CallsTotal = c.calls.since(t.counters.CallsTotal, streamedCalls)
	now.Calls = c.CallCounts()
	if !t.started || !t.counters.equal(now) {
		event.Counters = &now
	}
	// A fault with its hits is small, and what it holds does not compare.
	if faults, err := json.Marshal(c.Faults()); err == nil && !bytes.Equal(t.faults, faults) {
		event.Faults, t.faults = faults, faults
	}
	changed = !t.started || len(event.Servers) > 0 || len(event.Gone) > 0 || event.Counters != nil || event.Faults != nil
	t.counters, t.started = now, true
	return event, changed
}

// sample reads all servers and what is counted under the same lock. The rows
// share their labels with the cloud, which replaces such maps instead of writing
// to them.
func (c *Cloud) sample() (rows []serverRow, counted counters) {
	c.locked(func(now time.Time) {
		for s := range c.servers.each() {
			rows = append(rows, c.serverRow(s, now))
		}
		counted = counters{NICs: c.nics.count(), Volumes: c.volumes.count(), History: c.totals}
	})
	return rows, counted
}

func (c *Cloud) serverRow(s *server, now time.Time) serverRow {
	at := s.stateAt(now)
	row := serverRow{Labels: s.Labels, rowFields: rowFields{
		ID: s.ID, Number: s.number, ProjectID: s.ProjectID, Region: s.Region, Name: s.Name,
		Status: at.status, PowerStatus: at.powerStatus, ErrorMessage: at.message,
		MachineType: s.MachineType, AvailabilityZone: s.AvailabilityZone,
		CreatedAt: s.CreatedAt.UnixMilli(), UpdatedAt: at.updatedAt.UnixMilli(),
	}}
	if len(s.NICIDs) > 0 {
		if nic, ok := c.nics.get(s.NICIDs[0]); ok {
			shown := nic.viewAt(now)
			if row.Address = shown.IPv4; row.Address == "" {
				row.Address = shown.IPv6
			}
		}
	}
	return row
}

// forget drops the servers that are not among the rows and returns their IDs.
func (t *told) forget(rows []serverRow) (gone []string) {
	there := make(map[string]bool, len(rows))
	for _, row := range rows {
		there[row.ID] = true
	}
	for id := range t.servers {
		if !there[id] {
			gone = append(gone, id)
			delete(t.servers, id)
		}
	}
	return gone
}

func (r serverRow) equal(other serverRow) bool {
	return r.rowFields == other.rowFields && maps.Equal(r.Labels, other.Labels)
}

func (c counters) equal(other counters) bool {
	return c.CallsTotal == other.CallsTotal && c.NICs == other.NICs && c.Volumes == other.Volumes &&
		c.History == other.History && maps.Equal(c.Calls, other.Calls)
}
