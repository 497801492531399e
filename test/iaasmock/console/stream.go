// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

const (
	// sampleEvery is the interval at which a stream compares the state, heartbeatEvery
	// its longest silence. Both are measured by the mock's clock.
	sampleEvery    = 500 * time.Millisecond
	heartbeatEvery = 15 * time.Second
	// sendLimit is how long a client may take to read an event, in real time, so that a
	// suspended client does not block its handler for ever.
	sendLimit = 30 * time.Second
)

// Stream sends the state as server-sent events: a snapshot, then changes. It compares the
// state every 500 ms while the client is connected, because changes of state are computed
// from the clock and cause no event. It runs in the request's goroutine and ends with it.
func Stream(w http.ResponseWriter, r *http.Request, source Source) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	stream := eventStream{to: w, controller: http.NewResponseController(w)}

	var known client
	lastSent := source.Now()
	for name := "snapshot"; ; name = "change" {
		news, changed := known.update(source)
		switch {
		case changed:
			if stream.send(name, news) != nil {
				return
			}
			lastSent = source.Now()
		case source.Now().Sub(lastSent) >= heartbeatEvery:
			if stream.beat() != nil {
				return
			}
			lastSent = source.Now()
		}
		if !source.Wait(r.Context(), sampleEvery) {
			return
		}
	}
}

// eventStream writes server-sent events.
type eventStream struct {
	to         io.Writer
	controller *http.ResponseController
}

func (s eventStream) send(name string, event any) error {
	encoded, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return s.write("event: %s\ndata: %s\n\n", name, encoded)
}

// beat sends a comment, which clients ignore.
func (s eventStream) beat() error { return s.write(": still here\n\n") }

func (s eventStream) write(format string, args ...any) error {
	// Not every ResponseWriter has deadlines; those of net/http do.
	_ = s.controller.SetWriteDeadline(clock.RealClock{}.Now().Add(sendLimit))
	if _, err := fmt.Fprintf(s.to, format, args...); err != nil {
		return err
	}
	return s.controller.Flush()
}

// streamedCalls is the largest number of calls in one event; /admin/calls has more.
const streamedCalls = 100

// Source is the mock as the console reads it.
type Source interface {
	// Now is the time of the mock's clock.
	Now() time.Time
	// Sample returns all servers and, without Calls and CallsTotal, the Counters, under
	// one lock.
	Sample() ([]Row, Counters)
	// CallCounts returns the number of calls by operation.
	CallCounts() map[string]int
	// CallsSince skips the first known calls and returns at most limit later ones (the
	// newest) as JSON, the oldest first, nil if there are none. total is the number of
	// all calls.
	CallsSince(known, limit int) (calls json.RawMessage, total int)
	// ActiveFaults returns the faults as a JSON list.
	ActiveFaults() json.RawMessage
	// Wait waits by the mock's clock; false if ctx ended first.
	Wait(ctx context.Context, d time.Duration) bool
}

// event is what changed. A snapshot is a change from nothing.
type event struct {
	// Now is the time of the mock's clock.
	Now time.Time `json:"now"`
	// Servers are new or changed servers, Gone the IDs of removed ones.
	Servers []Row    `json:"servers,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Calls are new calls, the oldest first.
	Calls    json.RawMessage `json:"calls,omitempty"`
	Counters *Counters       `json:"counters,omitempty"`
	// Faults are all faults, if they have changed.
	Faults json.RawMessage `json:"faults,omitempty"`
}

// Counters are the counts that the page shows; the stream sends all of them when one
// changes.
type Counters struct {
	// Calls has the number of calls by operation, CallsTotal the number of all calls,
	// also those before ResetCalls.
	Calls      map[string]int `json:"calls"`
	CallsTotal int            `json:"callsTotal"`
	NICs       int            `json:"nics"`
	Volumes    int            `json:"volumes"`
	// History is a value that == can compare.
	History any `json:"history"`
}

// Row is one server in the page's list.
type Row struct {
	Fields
	Labels map[string]string `json:"labels"`
}

// Fields are the fields of a Row that == can compare.
type Fields struct {
	ID string `json:"id"`
	// Number is in order of creation.
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
	// CreatedAt is in Unix milliseconds: == does not work for times.
	CreatedAt int64 `json:"createdAt"`
	// UpdatedAt is in Unix milliseconds, too.
	UpdatedAt int64 `json:"updatedAt"`
}

// client is the state sent to one client so far.
type client struct {
	servers  map[string]Row
	counters Counters
	faults   json.RawMessage
	started  bool
}

// update returns the changes since the last update and marks them as sent. The first time
// changed is true, also for an empty state.
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
	// Faults are compared as JSON: they are small, and == does not work for them.
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
