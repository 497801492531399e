// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"time"
)

// streamedCalls bounds an event: who wants all calls asks /admin/calls.
const streamedCalls = 100

// Source is the cloud that the console shows.
type Source interface {
	// Now is the cloud's time.
	Now() time.Time
	// Sample reads all servers, and Counters but for those of calls, at one moment.
	Sample() ([]Row, Counters)
	// CallCounts are the calls by operation.
	CallCounts() map[string]int
	// CallsSince returns the calls after the first known ones, at most limit of them, the
	// oldest first, as a JSON list (nil if there are none), and how many there were in all.
	CallsSince(known, limit int) (calls json.RawMessage, total int)
	// ActiveFaults are the faults in force, as a JSON list.
	ActiveFaults() json.RawMessage
	// Wait waits by the cloud's clock; false if ctx ended before.
	Wait(ctx context.Context, d time.Duration) bool
}

// event is what changed. A snapshot is a change from nothing.
type event struct {
	// Now is the cloud's time.
	Now time.Time `json:"now"`
	// Servers are new or changed, Gone are the IDs of those that are no more.
	Servers []Row    `json:"servers,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Calls are new, the oldest first.
	Calls    json.RawMessage `json:"calls,omitempty"`
	Counters *Counters       `json:"counters,omitempty"`
	// Faults are all that are active.
	Faults json.RawMessage `json:"faults,omitempty"`
}

// Counters are sent whole when one of them has changed.
type Counters struct {
	// Calls are how many there were of each operation, CallsTotal all of them,
	// also those before a ResetCalls.
	Calls      map[string]int `json:"calls"`
	CallsTotal int            `json:"callsTotal"`
	NICs       int            `json:"nics"`
	Volumes    int            `json:"volumes"`
	// History is a comparable value.
	History any `json:"history"`
}

// Row is what a list shows of a server.
type Row struct {
	Fields
	Labels map[string]string `json:"labels"`
}

// Fields can be compared.
type Fields struct {
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

// client is what a stream's client knows.
type client struct {
	servers  map[string]Row
	counters Counters
	faults   json.RawMessage
	started  bool
}

// update returns what the client does not know yet, and takes it as told. The
// first time there is always something, if only that there is nothing.
func (c *client) update(source Source) (news event, changed bool) {
	if c.servers == nil {
		c.servers = map[string]Row{}
	}
	news.Now = source.Now()
	rows, now := source.Sample()
	for _, row := range rows {
		if known, ok := c.servers[row.ID]; !ok || !known.equal(row) {
			news.Servers = append(news.Servers, row)
			c.servers[row.ID] = row
		}
	}
	if len(c.servers) > len(rows) {
		news.Gone = c.forget(rows)
	}
	news.Calls, now.CallsTotal = source.CallsSince(c.counters.CallsTotal, streamedCalls)
	now.Calls = source.CallCounts()
	if !c.started || !c.counters.equal(now) {
		news.Counters = &now
	}
	// A fault with its hits is small, and what it holds does not compare.
	if faults := source.ActiveFaults(); !bytes.Equal(c.faults, faults) {
		news.Faults, c.faults = faults, faults
	}
	changed = !c.started || len(news.Servers) > 0 || len(news.Gone) > 0 || news.Counters != nil || news.Faults != nil
	c.counters, c.started = now, true
	return news, changed
}

// forget drops the servers that are not among the rows and returns their IDs.
func (c *client) forget(rows []Row) (gone []string) {
	there := make(map[string]bool, len(rows))
	for _, row := range rows {
		there[row.ID] = true
	}
	for id := range c.servers {
		if !there[id] {
			gone = append(gone, id)
			delete(c.servers, id)
		}
	}
	return gone
}

func (r Row) equal(other Row) bool {
	return r.Fields == other.Fields && maps.Equal(r.Labels, other.Labels)
}

func (c Counters) equal(other Counters) bool {
	return c.CallsTotal == other.CallsTotal && c.NICs == other.NICs && c.Volumes == other.Volumes &&
		c.History == other.History && maps.Equal(c.Calls, other.Calls)
}
