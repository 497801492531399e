// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Servers returns the servers that exist now, including DELETING ones, in the
// order they were created.
func (c *Cloud) Servers() []Server { return copies(c, &c.servers, (*server).viewAt) }

// NICs returns the NICs that exist now, including the catalogue's.
func (c *Cloud) NICs() []NIC { return copies(c, &c.nics, (*nic).viewAt) }

// Volumes returns the volumes that exist now, including the catalogue's.
func (c *Cloud) Volumes() []Volume {
	return copies(c, &c.volumes, func(v *Volume, _ time.Time) Volume { return *v })
}

func copies[T, V any](c *Cloud, of *collection[T], view func(T, time.Time) V) (all []V) {
	c.locked(func(now time.Time) {
		for item := range of.each() {
			all = append(all, view(item, now))
		}
	})
	return all
}

// Server returns the server with this ID if it exists now.
func (c *Cloud) Server(id string) (found Server, ok bool) {
	err := c.change(id, func(s *server, now time.Time) { found = s.viewAt(now) })
	return found, err == nil
}

// History returns how many servers were created and deleted since New.
func (c *Cloud) History() Totals {
	var totals Totals
	c.locked(func(time.Time) { totals = c.totals })
	return totals
}

// SetServerStatus sets the state and the errorMessage of a server; "" means no errorMessage. The
// server keeps the state until a call of the API changes it: a boot or deletion in progress is
// canceled. Lists that lag show the state later.
func (c *Cloud) SetServerStatus(id, status, errorMessage string) error {
	return c.change(id, func(s *server, now time.Time) { s.setState(now, status, errorMessage, transition{}) })
}

// SetConsoleLog sets the console log of a server.
func (c *Cloud) SetConsoleLog(id, log string) error {
	return c.change(id, func(s *server, _ time.Time) { s.console = log })
}

// change changes a server. It returns an error if there is none with the ID.
func (c *Cloud) change(id string, change func(*server, time.Time)) error {
	err := fmt.Errorf("server %s does not exist", id)
	c.locked(func(now time.Time) {
		if s, ok := c.servers.get(id); ok {
			change(s, now)
			err = nil
		}
	})
	return err
}

// RemoveServer removes a server at once, as if its deletion ended now. NICs and volumes are deleted
// or kept as with DeleteServer; lists that lag still show the server.
func (c *Cloud) RemoveServer(id string) error {
	return c.change(id, c.remove)
}

// Calls returns the most recent calls, at most 20000, the oldest first.
func (c *Cloud) Calls() []Call {
	return c.calls.last(keptCalls)
}

// CallCounts returns the number of calls by operation since New or the last
// ResetCalls. Operations without calls are missing.
func (c *Cloud) CallCounts() map[string]int {
	l := &c.calls
	l.mu.Lock()
	defer l.mu.Unlock()
	return orEmptyMap(l.counts)
}

// ResetCalls discards all calls and their counts.
func (c *Cloud) ResetCalls() {
	l := &c.calls
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.counts = nil, nil
}

// keptCalls is the number of calls that are kept. It bounds the memory of a long-running
// mock; the counts include all calls.
const keptCalls = 20000

// Call is a request that the mock has answered, or whose connection it has reset.
type Call struct {
	// Operation is one of fault.Operations, or fault.OperationToken or fault.OperationUnknown.
	Operation string     `json:"operation"`
	Method    string     `json:"method"`
	Path      string     `json:"path"`
	Query     url.Values `json:"query,omitempty"`
	// Status is the HTTP status of the answer; 0 if the connection was reset or the client
	// disconnected.
	Status    int       `json:"status"`
	RequestID string    `json:"requestId"`
	StartedAt time.Time `json:"startedAt"`
	// Duration is the time until the answer; in JSON, in nanoseconds.
	Duration time.Duration `json:"duration"`
	// Faults are the IDs of the faults that hit the call.
	Faults []string `json:"faults,omitempty"`
	// Replaced reports whether a Fault's answer was sent instead of the API's.
	Replaced bool `json:"replaced,omitempty"`
}

type callKey struct{}

// NoteCall returns a context for a request, for handlers that wrap a Cloud: ServeHTTP fills in
// *call before it answers the request.
func NoteCall(ctx context.Context, call *Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// note fills in the Call of NoteCall, if there is one.
func (call Call) note(ctx context.Context) {
	if noted, ok := ctx.Value(callKey{}).(*Call); ok {
		*noted = call
	}
}

// Totals counts the servers created and deleted since New, whether by API calls or by methods.
type Totals struct {
	ServersCreated int `json:"serversCreated"`
	ServersDeleted int `json:"serversDeleted"`
}

// callLog keeps the last keptCalls calls and counts all calls.
type callLog struct {
	mu     sync.Mutex
	kept   []Call // at most twice keptCalls
	counts map[string]int
}

func (l *callLog) add(call Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[call.Operation]++
	if len(l.kept) == 2*keptCalls {
		l.kept = slices.Clone(l.kept[keptCalls:])
	}
	l.kept = append(l.kept, call)
}

// last returns at most limit of the last calls, the oldest first.
func (l *callLog) last(limit int) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return orEmpty(slices.Clone(l.kept[max(len(l.kept)-limit, 0):]))
}
