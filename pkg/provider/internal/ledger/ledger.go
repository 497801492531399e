// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package ledger remembers what this process did for each machine.
//
// The manager's next call for a machine may come microseconds after the last one, from
// a cache that has not seen that one's answer; and the answer to a POST may be lost.
// The ledger keeps both from making a second server. Its rule: never POST without a
// look-up that could have seen the result of every earlier POST.
//
// A POST passes these transitions:
//
//	Claim ──▶ Accepted        its answer named a server
//	      ├─▶ Refused         it surely made none
//	      └─▶ OutcomeUnknown  nobody knows
//
// It is open until it is refused, or until the server that its answer named is proved
// gone (ServerGone). Adopt does not close it: the adopted server may come from an earlier
// POST. While a POST is open, a look-up that does not show its server proves
// nothing until settle has passed since its end: see Entry.NoPostBefore.
//
// An entry ends with the deletion of its machine (Forget), or when nobody has written it
// for an hour. A restart of the process loses all of them; for machines that are
// older the driver then waits settle before it trusts an empty look-up.
package ledger

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// lifetime is how long an entry is kept that nobody writes.
const lifetime = time.Hour

// Key names a machine across sessions: a rotated service-account key does not change
// it.
type Key struct {
	Endpoint, ProjectID, Region, Machine string
}

// Entry has the facts that this process knows of a machine at first hand.
// It is a copy: the transitions of the Ledger change the original.
type Entry struct {
	// ServerID is the machine's server, once it is known and checked to be ours.
	ServerID string
	// Addresses are those of the server's NICs, once each NIC has one.
	Addresses []string
	// Allowed is a fingerprint of the allowed addresses that the server's NICs were seen
	// to carry; "" if none were.
	Allowed string

	settle time.Duration
	// claims counts the POSTs, posting says that one is under way.
	claims  int
	posting bool
	// open maps a server to the end of the POST whose answer named it, while that POST is
	// open. The last POST with unknown outcome stands under "".
	open map[string]time.Time
	// gone is when servers were proved gone.
	gone map[string]time.Time
	// written is when the entry was last changed.
	written time.Time
}

// NoPostBefore returns when a look-up must begin so that it sees the result of every
// open POST. One that begins earlier proves nothing if it finds no server. It is the zero
// time if none is open.
func (e *Entry) NoPostBefore() time.Time {
	var certain time.Time
	for _, ended := range e.open {
		if settled := ended.Add(e.settle); settled.After(certain) {
			certain = settled
		}
	}
	return certain
}

// Gone reports whether the server was proved gone at most one settle time ago: lists may
// still show it.
func (e *Entry) Gone(serverID string) bool {
	_, gone := e.gone[serverID]
	return gone
}

// Ledger keeps the entries of all machines. It is safe for concurrent use.
type Ledger struct {
	clock  clock.PassiveClock
	settle time.Duration

	mu      sync.Mutex
	entries map[Key]*Entry
	swept   time.Time
}

// New returns an empty Ledger. settle is how long the API may take until a request
// shows in its lists.
func New(clock clock.PassiveClock, settle time.Duration) *Ledger {
	return &Ledger{clock: clock, settle: settle, entries: map[Key]*Entry{}}
}

// Get returns the machine's entry; an empty one if there is none.
func (l *Ledger) Get(key Key) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.entries[key]
	if !ok {
		return Entry{settle: l.settle}
	}
	entry := *found
	now := l.clock.Now()
	entry.open, entry.gone = maps.Clone(found.open), maps.Clone(found.gone)
	maps.DeleteFunc(entry.gone, func(_ string, at time.Time) bool { return now.Sub(at) > l.settle })
	if entry.posting {
		entry.open[""] = now // it ends now at the earliest
	}
	return entry
}

// Claim notes that a POST is about to be sent, and returns true. It returns false, and
// the caller must not send one, if another call is sending a POST, or has changed the
// entry since seen was read.
func (l *Ledger) Claim(key Key, seen Entry) bool {
	claimed := false
	l.change(key, func(e *Entry, _ time.Time) {
		claimed = !e.posting && e.claims == seen.claims && e.ServerID == seen.ServerID
		if claimed {
			e.posting = true
			e.claims++
		}
	})
	return claimed
}

// Accepted ends a POST whose answer named the server, which is the machine's now.
func (l *Ledger) Accepted(key Key, serverID string) {
	l.change(key, func(e *Entry, now time.Time) {
		e.posting, e.open[serverID] = false, now
		e.setServer(serverID)
	})
}

// Refused ends a POST that surely made no server.
func (l *Ledger) Refused(key Key) {
	l.change(key, func(e *Entry, _ time.Time) { e.posting = false })
}

// OutcomeUnknown ends a POST that may have made a server.
func (l *Ledger) OutcomeUnknown(key Key) {
	l.change(key, func(e *Entry, now time.Time) {
		e.posting, e.open[""] = false, now
	})
}

// Adopt records a server that was found, and checked to be ours, as the machine's.
func (l *Ledger) Adopt(key Key, serverID string) {
	l.change(key, func(e *Entry, _ time.Time) { e.setServer(serverID) })
}

// ServerGone notes that a server was proved gone: it is the machine's no more, and the
// POST that made it is closed.
func (l *Ledger) ServerGone(key Key, serverID string) {
	l.change(key, func(e *Entry, now time.Time) {
		delete(e.open, serverID)
		e.gone[serverID] = now
		if e.ServerID == serverID {
			e.setServer("")
		}
	})
}

// SawAddresses notes the addresses of the NICs of the machine's server.
func (l *Ledger) SawAddresses(key Key, serverID string, addresses []string) {
	l.change(key, func(e *Entry, _ time.Time) {
		if e.ServerID == serverID {
			e.Addresses = addresses
		}
	})
}

// SawAllowed notes which allowed addresses the NICs of the machine's server carry.
func (l *Ledger) SawAllowed(key Key, serverID, fingerprint string) {
	l.change(key, func(e *Entry, _ time.Time) {
		if e.ServerID == serverID {
			e.Allowed = fingerprint
		}
	})
}

// Forget ends the entry: the machine was deleted.
func (l *Ledger) Forget(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
}

func (l *Ledger) change(key Key, change func(e *Entry, now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	entry, ok := l.entries[key]
	if !ok {
		entry = &Entry{settle: l.settle, open: map[string]time.Time{}, gone: map[string]time.Time{}}
		l.entries[key] = entry
	}
	change(entry, now)
	entry.written = now
	maps.DeleteFunc(entry.gone, func(_ string, at time.Time) bool { return now.Sub(at) > l.settle })
	l.sweep(now)
}

// sweep drops old entries now and then: the ledger stays small without a goroutine.
func (l *Ledger) sweep(now time.Time) {
	if now.Sub(l.swept) < lifetime/10 {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.entries, func(_ Key, e *Entry) bool { return now.Sub(e.written) > lifetime })
}

// setServer makes the server the machine's, and clears the facts about another one's NICs.
func (e *Entry) setServer(serverID string) {
	if e.ServerID != serverID {
		e.ServerID, e.Addresses, e.Allowed = serverID, nil, ""
	}
}
