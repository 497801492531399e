// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"context"
	"net/url"
	"sync"
	"time"
)

// keptCalls is the number of calls that are kept. It bounds the memory of a long-running
// mock; the counts include all calls.
const keptCalls = 20000

// Call is one request that the mock has answered, or whose connection it has reset.
type Call struct {
	// Operation is an operationId, Token or Unknown.
	Operation string     `json:"operation"`
	Method    string     `json:"method"`
	Path      string     `json:"path"`
	Query     url.Values `json:"query,omitempty"`
	// Status is 0 if the connection was reset or the client disconnected.
	Status    int       `json:"status"`
	RequestID string    `json:"requestId"`
	StartedAt time.Time `json:"startedAt"`
	// Duration is in nanoseconds in JSON.
	Duration time.Duration `json:"duration"`
	// Faults are the IDs of the faults that hit it.
	Faults []string `json:"faults,omitempty"`
	// Replaced is true if a Fault's answer was sent instead of the API's.
	Replaced bool `json:"replaced,omitempty"`
}

type callKey struct{}

// NoteCall returns ctx with call attached: ServeHTTP fills in *call before it answers a
// request with this context. It is for handlers that wrap a Cloud.
func NoteCall(ctx context.Context, call *Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// note fills in the Call of NoteCall, if there is one.
func (call Call) note(ctx context.Context) {
	if noted, ok := ctx.Value(callKey{}).(*Call); ok {
		*noted = call
	}
}

// Totals counts resources created and deleted since New, by calls and by methods. The
// catalogue's are not counted as created, but as deleted if they go.
type Totals struct {
	ServersCreated int `json:"serversCreated"`
	ServersDeleted int `json:"serversDeleted"`
	NICsCreated    int `json:"nicsCreated"`
	NICsDeleted    int `json:"nicsDeleted"`
	VolumesCreated int `json:"volumesCreated"`
	VolumesDeleted int `json:"volumesDeleted"`
}

// callLog keeps the last keptCalls calls and counts all calls.
type callLog struct {
	mu     sync.Mutex
	ring   []Call
	next   int
	counts map[string]int
	// total counts all calls, also those before ResetCalls. since takes it to return only
	// later calls.
	total int
}

func (l *callLog) add(call Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[call.Operation]++
	l.total++
	if len(l.ring) < keptCalls {
		l.ring = append(l.ring, call)
		return
	}
	l.ring[l.next] = call
	l.next = (l.next + 1) % keptCalls
}

// since skips the first seen calls and returns at most limit later ones (the newest), the
// oldest first, and the number of all calls.
func (l *callLog) since(seen, limit int) (calls []Call, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := min(l.total-seen, len(l.ring), limit)
	calls = make([]Call, 0, max(count, 0))
	for i := len(l.ring) - count; i < len(l.ring); i++ {
		calls = append(calls, l.ring[(l.next+i)%len(l.ring)])
	}
	return calls, l.total
}
