// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package ledger remembers what this process did for each machine.
//
// The manager's next call for a machine may come microseconds after the last one, from
// a cache that has not seen the last answer; and the answer to a POST may be lost.
// The ledger keeps both from making a second server. Its rule: never POST without a
// look-up that could have seen the result of every earlier POST.
//
// A POST passes these transitions:
//
//	Claim ──▶ Accepted        its answer named a server
//	      ├─▶ Refused         it surely made none, or was not sent
//	      └─▶ OutcomeUnknown  nobody knows
//
// A POST is open until one of these: it is refused; the server that its answer named was shown by
// a read and is proved gone (ServerGone); look-ups that could have seen its result prove that there
// is no server (ProvedNone). Adopt does not close it: the adopted server may come from an earlier
// POST. While a POST is open, a look-up that does not show its server proves nothing until settle
// has passed since the POST's end: see Entry.NoPostBefore.
//
// The answer to a POST names only an ID. Until the first read has decided whose server that is
// (Adopt, or NotOurs), the entry is marked (Entry.Unread).
//
// There is one entry for a machine, which has the project and region of its server. While the entry
// has a server or an open POST there, a request for another project or region does not change it
// (Entry.Elsewhere): nobody would ever look there again. Otherwise the entry takes over the
// request's project and region.
//
// An entry ends with the deletion of its machine (Forget), or an hour (Lifetime) after its last
// use. A restart of the process loses all of them; for older machines the driver then waits settle
// before it trusts an empty look-up. Servers that were proved gone are kept apart from the
// entries, for settle: lists may still show them.
package ledger

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Lifetime is how long an entry is kept that nobody uses.
const Lifetime = time.Hour

// Key is a request about a machine, across sessions: a rotated service-account key does not
// change it.
type Key struct {
	// Endpoint is the API's. With Namespace and Machine it names the entry.
	Endpoint, Namespace, Machine string
	// UID is the Machine's; "" if the request has none.
	UID string
	// Created is the Machine's creationTimestamp; the zero time if the request has none.
	Created time.Time
	Place
}

// Place is where the servers of a request are.
type Place struct{ ProjectID, Region string }

// machineKey names an entry.
type machineKey struct{ endpoint, namespace, machine string }

func (k Key) entry() machineKey { return machineKey{k.Endpoint, k.Namespace, k.Machine} }

// serverKey names a server.
type serverKey struct {
	endpoint string
	place    Place
	id       string
}

func (k Key) server(id string) serverKey {
	return serverKey{k.Endpoint, k.Place, id}
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
	// Fault is why the machine's last server ended in ERROR; nil if none did since the last one
	// that was adopted.
	Fault error
	// Elsewhere is the place of the machine's server or open POST, where that is not the
	// request's; nil if there is none.
	Elsewhere *Place
	// OfAnother says that another Machine of the name had this entry, by its UID.
	OfAnother bool
	// OfYounger says that this other Machine is younger than the request's, which is gone or going.
	OfYounger bool

	settle time.Duration
	place  Place
	// uid is that of the Machine that the last POST was for, or whose server was adopted; created is its
	// creationTimestamp.
	uid     string
	created time.Time
	// claims counts the POSTs, posting says that one is under way. claimed is when the last one was
	// sent, accepted the server that its answer named.
	claims   int
	posting  bool
	claimed  time.Time
	accepted string
	// open maps a server to the end of the POST whose answer named it, while that POST is
	// open. The last POST with unknown outcome stands under "".
	open map[string]time.Time
	// used is when the entry was last read or changed.
	used time.Time
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
// proved gone: also while that server is known, and runs.
func (e *Entry) HasOpenPost() bool { return len(e.open) > 0 }

// PostedAt returns when the machine's last POST was sent, if its answer named the server; else the zero
// time.
func (e *Entry) PostedAt(serverID string) time.Time {
	if e.accepted != serverID {
		return time.Time{}
	}
	return e.claimed
}

// Ledger keeps the entries of all machines. It is safe for concurrent use.
type Ledger struct {
	clock  clock.PassiveClock
	settle time.Duration

	mu      sync.Mutex
	entries map[machineKey]*Entry
	// gone is when servers were proved gone.
	gone  map[serverKey]time.Time
	swept time.Time
}

// New returns an empty Ledger. settle is how long the API may take until a request
// shows in its lists.
func New(clock clock.PassiveClock, settle time.Duration) *Ledger {
	return &Ledger{clock: clock, settle: settle, entries: map[machineKey]*Entry{}, gone: map[serverKey]time.Time{}}
}

// Get returns the machine's entry; an empty one if there is none, or none for the request's place.
func (l *Ledger) Get(key Key) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.entries[key.entry()]
	if !ok {
		return Entry{settle: l.settle}
	}
	found.used = l.clock.Now()
	entry := *found
	entry.OfAnother, entry.OfYounger = found.isOfAnother(key), found.isOfYounger(key)
	if found.place != key.Place {
		entry = Entry{settle: l.settle, claims: found.claims, OfAnother: entry.OfAnother, OfYounger: entry.OfYounger}
		if found.holds(key) {
			place := found.place
			entry.Elsewhere = &place
		}
		return entry
	}
	entry.open = maps.Clone(found.open)
	if entry.posting {
		entry.open[""] = l.clock.Now() // it ends now at the earliest
	}
	return entry
}

// isOfAnother says that a Machine with another UID has the entry. A request without a UID counts
// as the entry's own.
func (e *Entry) isOfAnother(key Key) bool { return e.uid != "" && key.UID != "" && e.uid != key.UID }

// isOfYounger says that a younger Machine of the name has the entry.
func (e *Entry) isOfYounger(key Key) bool {
	return e.isOfAnother(key) && !key.Created.IsZero() && key.Created.Before(e.created)
}

// holds says that the entry keeps its place: the machine may have a server there.
func (e *Entry) holds(key Key) bool {
	return !e.isOfAnother(key) && (e.ServerID != "" || e.posting || len(e.open) > 0)
}

// Gone says that the server was proved gone at most one settle ago, and that no GET has
// shown it since.
func (l *Ledger) Gone(key Key, serverID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, gone := l.gone[key.server(serverID)]
	return gone && l.clock.Since(at) <= l.settle
}

// Claim notes that a POST is about to be sent, and returns true. It returns false, and
// the caller must not send one, if another call is sending a POST, or has changed the
// entry since seen was read, or if the machine may have a server elsewhere.
func (l *Ledger) Claim(key Key, seen Entry) bool {
	claimed := false
	l.take(key, func(e *Entry) {
		claimed = !e.posting && e.claims == seen.claims && e.ServerID == seen.ServerID
		if claimed {
			e.posting, e.uid, e.created, e.claimed, e.accepted = true, key.UID, key.Created, l.clock.Now(), ""
			e.claims++
		}
	})
	return claimed
}

// Accepted ends a POST whose answer named the server. Whose it is, the first read decides.
func (l *Ledger) Accepted(key Key, serverID string) {
	l.change(key, func(e *Entry, now time.Time) {
		e.posting, e.open[serverID], e.accepted = false, now, serverID
		e.setServer(serverID)
		e.Unread = true
	})
}

// NotOurs notes that the server which the answer to a POST named is somebody else's: the
// POST has an unknown outcome.
func (l *Ledger) NotOurs(key Key, serverID string) {
	l.change(key, func(e *Entry, _ time.Time) {
		e.disown(serverID)
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
func (l *Ledger) Adopt(key Key, serverID string) {
	l.take(key, func(e *Entry) {
		e.setServer(serverID)
		e.Unread, e.Fault, e.uid, e.created = false, nil, key.UID, key.Created
	})
}

// Failed notes that the machine's server ended in ERROR: it is of no use, though it may be there.
func (l *Ledger) Failed(key Key, serverID string, fault error) {
	l.change(key, func(e *Entry, _ time.Time) {
		e.Fault = fault
		if e.ServerID == serverID {
			e.setServer("")
		}
	})
}

// ServerGone notes that a server was proved gone: it is the machine's no more, and the
// POST that made it is closed. Where no read ever showed the server, the answer to the POST may have
// named another one: the POST has an unknown outcome.
func (l *Ledger) ServerGone(key Key, serverID string) {
	l.change(key, func(e *Entry, _ time.Time) {
		if e.ServerID == serverID && e.Unread {
			e.disown(serverID)
		}
		delete(e.open, serverID)
		if e.ServerID == serverID {
			e.setServer("")
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[key.server(serverID)] = l.clock.Now()
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

// Forget ends the entry: the machine was deleted. That of a younger Machine of the name stays.
func (l *Ledger) Forget(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[key.entry()]; ok && !e.isOfYounger(key) {
		delete(l.entries, key.entry())
	}
}

// change changes the machine's entry, unless that is about another place.
func (l *Ledger) change(key Key, change func(e *Entry, now time.Time)) {
	l.apply(key, func(e *Entry, now time.Time) {
		if e.place == key.Place {
			change(e, now)
		}
	})
}

// take is change for what makes the entry the request's: one that holds nothing elsewhere takes
// over the request's place.
func (l *Ledger) take(key Key, change func(e *Entry)) {
	l.apply(key, func(e *Entry, _ time.Time) {
		switch {
		case e.place == key.Place:
		case e.holds(key):
			return
		default:
			*e = Entry{settle: l.settle, place: key.Place, claims: e.claims, used: e.used, open: map[string]time.Time{}}
		}
		change(e)
	})
}

func (l *Ledger) apply(key Key, change func(e *Entry, now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	entry, ok := l.entries[key.entry()]
	if !ok {
		entry = &Entry{settle: l.settle, place: key.Place, open: map[string]time.Time{}}
		l.entries[key.entry()] = entry
	}
	entry.used = now
	change(entry, now)
	l.sweep(now)
}

// sweep drops what is old now and then: the ledger stays small without a goroutine.
func (l *Ledger) sweep(now time.Time) {
	if now.Sub(l.swept) < Lifetime/10 {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.entries, func(_ machineKey, e *Entry) bool { return now.Sub(e.used) > Lifetime })
	maps.DeleteFunc(l.gone, func(_ serverKey, at time.Time) bool { return now.Sub(at) > l.settle })
}

// disown turns the open POST whose answer named the server into one with an unknown outcome.
func (e *Entry) disown(serverID string) {
	if ended, open := e.open[serverID]; open {
		delete(e.open, serverID)
		if ended.After(e.open[""]) {
			e.open[""] = ended
		}
	}
}

// setServer makes the server the machine's, and clears the facts about another one's NICs.
func (e *Entry) setServer(serverID string) {
	if e.ServerID != serverID {
		e.ServerID, e.Unread, e.Addresses, e.Allowed = serverID, false, nil, ""
	}
}
