// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Fault is something that goes wrong. Operation and Match say for which calls;
// the rest says what happens to them. Of several faults that fit a call the one
// injected first is used, alone.
type Fault struct {
	// Operation is the operationId of the official API document, "Token" for
	// the token endpoint, "Unknown" for what the mock does not know, "" for any.
	Operation string
	// Match narrows it down; nil fits every request. It must not read the body.
	Match func(*http.Request) bool
	// Count is how many calls it hits; 0 means all until it is removed.
	Count int

	// Delay is waited first, in addition to the latency.
	Delay time.Duration
	// AnswerDelay holds the answer back; the call is carried out before. A client
	// that leaves meanwhile never hears of it.
	AnswerDelay time.Duration

	// Status is answered instead of doing anything, if it is not 0.
	Status int
	// Body is answered with Status. With neither Body nor ContentType the
	// answer has the API's own error form.
	Body string
	// ContentType belongs to Body; default application/json.
	ContentType string
	// Header is added to the answer, also without Status.
	Header http.Header
	// Executed: the call is carried out all the same, only its answer is
	// replaced by Status and Body, as when a gateway gave up waiting.
	Executed bool

	// DropBefore resets the connection; nothing was done.
	DropBefore bool
	// DropAfter carries the call out and resets the connection: the answer is
	// lost.
	DropAfter bool

	// FinalStatus, with CreateServer: the state the server ends in instead of
	// ACTIVE, usually StatusError. With DeleteServer: the state it ends in
	// instead of being gone. With StartServer, StopServer, DeallocateServer and
	// RebootServer: the state it ends in instead of the action's own.
	FinalStatus string
	// ErrorMessage is the server's errorMessage in FinalStatus.
	ErrorMessage string
	// NeverBoots, with CreateServer: it stays CREATING.
	NeverBoots bool
	// NeverGone, with DeleteServer: it stays DELETING, until the next
	// DeleteServer.
	NeverGone bool
}

// Inject adds a fault and returns what takes it away again. Calls it already
// hit are not undone.
func (c *Cloud) Inject(f Fault) (remove func()) {
	return c.faults.add(f)
}

// faultBook holds the faults; every request passes through take exactly once.
type faultBook struct {
	mu      sync.Mutex
	entries []*faultEntry
}

type faultEntry struct {
	fault Fault
	left  int
}

func (b *faultBook) add(f Fault) (remove func()) {
	f.Header = f.Header.Clone()
	entry := &faultEntry{fault: f, left: f.Count}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, entry)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.entries = slices.DeleteFunc(b.entries, func(e *faultEntry) bool { return e == entry })
	}
}

// take returns the fault for this call, the zero Fault if there is none.
func (b *faultBook) take(operation string, r *http.Request) Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, entry := range b.entries {
		f := entry.fault
		if f.Operation != "" && f.Operation != operation || f.Match != nil && !f.Match(r) {
			continue
		}
		if f.Count > 0 {
			if entry.left--; entry.left == 0 {
				b.entries = slices.Delete(b.entries, i, i+1)
			}
		}
		return f
	}
	return Fault{}
}

func (f Fault) replacesAnswer() bool { return f.Status != 0 }

// answer is what a client is told instead of the truth.
func (f Fault) answer() answer {
	if f.Body == "" && f.ContentType == "" {
		return errorAnswer(newError(f.Status, "%s", http.StatusText(f.Status)))
	}
	contentType := f.ContentType
	if contentType == "" {
		contentType = jsonContentType
	}
	return answer{status: f.Status, contentType: contentType, body: []byte(f.Body)}
}
