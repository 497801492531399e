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
//	      ├─▶ Refused         it surely made none, or was not sent
//	      └─▶ OutcomeUnknown  nobody knows
//
// It is open until it is refused, until the server that its answer named is proved gone
// (ServerGone), or until look-ups that could have seen its result prove that there is no
// server (ProvedNone). Adopt does not close it: the adopted server may come from an earlier
// POST. While a POST is open, a look-up that does not show its server proves
// nothing until settle has passed since its end: see Entry.NoPostBefore.
//
// The answer to a POST names an ID and nothing else: until the first read has decided
// whose server that is (Adopt, or NotOurs), the entry says so (Entry.Unread).
//
// An entry ends with the deletion of its machine (Forget), or when nobody has written it
// for an hour (Lifetime). A restart of the process loses all of them; for machines that are
// older the driver then waits settle before it trusts an empty look-up. Which servers were
// proved gone is kept apart from the entries, for settle: lists may still show them.
package ledger

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Lifetime is how long an entry is kept that nobody writes.
const Lifetime = time.Hour

// Key names a machine across sessions: a rotated service-account key does not change
// it.
type Key struct {
	Endpoint, ProjectID, Region, Machine string
}

// serverKey names a server.
type serverKey struct {
	Endpoint, ProjectID, Region, ID string
}

func (k Key) server(id string) serverKey {
	return serverKey{k.Endpoint, k.ProjectID, k.Region, id}
}

// Entry has the facts that this process knows of a machine at first hand.
// It is a copy: the transitions of the Ledger change the original.
type Entry struct {
	// ServerID is the machine's server, once it is known; "" before.
	ServerID string
	// Unread says that ServerID is what the answer to a POST named, and that no read has
	// shown yet whose server it is.
	Unread bool
	// Addresses are those of the server's NICs, once each NIC has one.
	Addresses []string
	// Allowed is a fingerprint of the allowed addresses that the server's NICs were seen
	// to carry; "" if none were.
	Allowed string

	settle time.Duration
	// uid is that of the Machine that the last POST was for, or whose server was adopted.
	uid string
	// claims counts the POSTs, posting says that one is under way.
	claims  int
	posting bool
	// open maps a server to the end of the POST whose answer named it, while that POST is
	// open. The last POST with unknown outcome stands under "".
	open map[string]time.Time
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

// HasOpenPost says that a POST is under way, or that its result may be a server that is not
// proved gone.
func (e *Entry) HasOpenPost() bool { return len(e.open) > 0 }

// Ledger keeps the entries of all machines. It is safe for concurrent use.
type Ledger struct {
	clock  clock.PassiveClock
	settle time.Duration

	mu      sync.Mutex
	entries map[Key]*Entry
	// gone is when servers were proved gone.
	gone  map[serverKey]time.Time
	swept time.Time
}

// New returns an empty Ledger. settle is how long the API may take until a request
// shows in its lists.
func New(clock clock.PassiveClock, settle time.Duration) *Ledger {
	return &Ledger{clock: clock, settle: settle, entries: map[Key]*Entry{}, gone: map[serverKey]time.Time{}}
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
	entry.open = maps.Clone(found.open)
	if entry.posting {
		entry.open[""] = l.clock.Now() // it ends now at the earliest
	}
	return entry
}

// Gone says that the server was proved gone at most one settle ago, and that no GET has
// shown it since.
func (l *Ledger) Gone(key Key, serverID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, gone := l.gone[key.server(serverID)]
	return gone && l.clock.Since(at) <= l.settle
}

// Elsewhere returns where else the machine has a server, or an open POST: in another
// project, region or API than key's. uid is the Machine's, "" if the request has none; an
// entry of another Machine with its name does not count.
func (l *Ledger) Elsewhere(key Key, uid string) (other Key, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, e := range l.entries {
		sameMachine := at.Machine == key.Machine && (e.uid == "" || uid == "" || e.uid == uid)
		if at != key && sameMachine && (e.ServerID != "" || e.posting || len(e.open) > 0) {
			return at, true
		}
	}
	return Key{}, false
}

// Claim notes that a POST is about to be sent, and returns true. It returns false, and
// the caller must not send one, if another call is sending a POST, or has changed the
// entry since seen was read. uid is the Machine's.
func (l *Ledger) Claim(key Key, uid string, seen Entry) bool {
	claimed := false
	l.change(key, func(e *Entry, _ time.Time) {
		claimed = !e.posting && e.claims == seen.claims && e.ServerID == seen.ServerID
		if claimed {
			e.posting, e.uid = true, uid
			e.claims++
		}
	})
	return claimed
}

// Accepted ends a POST whose answer named the server. Whose it is, the first read decides.
func (l *Ledger) Accepted(key Key, serverID string) {
	l.change(key, func(e *Entry, now time.Time) {
		e.posting, e.open[serverID] = false, now
		e.setServer(serverID)
		e.Unread = true
	})
}

// NotOurs notes that the server which the answer to a POST named is somebody else's: the
// POST has an unknown outcome.
func (l *Ledger) NotOurs(key Key, serverID string) {
	l.change(key, func(e *Entry, _ time.Time) {
		if ended, open := e.open[serverID]; open {
			delete(e.open, serverID)
			if ended.After(e.open[""]) {
				e.open[""] = ended
			}
		}
		if e.ServerID == serverID {
			e.setServer("")
		}
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
// uid is the Machine's.
func (l *Ledger) Adopt(key Key, uid, serverID string) {
	l.change(key, func(e *Entry, _ time.Time) {
		e.setServer(serverID)
		e.Unread, e.uid = false, uid
	})
}

// ServerGone notes that a server was proved gone: it is the machine's no more, and the
// POST that made it is closed.
func (l *Ledger) ServerGone(key Key, serverID string) {
	l.change(key, func(e *Entry, now time.Time) {
		delete(e.open, serverID)
		l.gone[key.server(serverID)] = now
		if e.ServerID == serverID {
			e.setServer("")
		}
	})
}

// ServerShown notes that a GET shows a server: it is not gone, whatever was proved before.
func (l *Ledger) ServerShown(key Key, serverID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.gone, key.server(serverID))
}

// ProvedNone closes the POSTs whose result a look-up that began then could see: look-ups
// have proved that there is no server beside those that they showed.
func (l *Ledger) ProvedNone(key Key, began time.Time) {
	l.change(key, func(e *Entry, _ time.Time) {
		maps.DeleteFunc(e.open, func(_ string, ended time.Time) bool { return !began.Before(ended.Add(l.settle)) })
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
		entry = &Entry{settle: l.settle, open: map[string]time.Time{}}
		l.entries[key] = entry
	}
	change(entry, now)
	entry.written = now
	l.sweep(now)
}

// sweep drops what is old now and then: the ledger stays small without a goroutine.
func (l *Ledger) sweep(now time.Time) {
	if now.Sub(l.swept) < Lifetime/10 {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.entries, func(_ Key, e *Entry) bool { return now.Sub(e.written) > Lifetime })
	maps.DeleteFunc(l.gone, func(_ serverKey, at time.Time) bool { return now.Sub(at) > l.settle })
}

// setServer makes the server the machine's, and clears the facts about another one's NICs.
func (e *Entry) setServer(serverID string) {
	if e.ServerID != serverID {
		e.ServerID, e.Unread, e.Addresses, e.Allowed = serverID, false, nil, ""
	}
}
