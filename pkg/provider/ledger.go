// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// ledgerLifetime is how long an entry is kept that nothing ended.
	ledgerLifetime = time.Hour
	// freshRead is how old the look-up of GetMachineStatus may be for
	// CreateMachine to rely on it: the manager calls one right after the other,
	// and what this process did in between stands in the ledger.
	freshRead = time.Second
)

// ledgerKey names a machine across sessions: a rotated key does not change it.
type ledgerKey struct {
	endpoint, projectID, region, machine string
}

// entry is what this process knows of a machine because it did it itself.
type entry struct {
	// posted is when a POST was last sent or given up, whichever is later; zero if
	// none was that may have been accepted.
	posted time.Time
	// posting is set while a call sends one.
	posting bool
	// made is when the POST of the ledger's server was answered; zero if it was not.
	made time.Time
	// serverID of the machine's server, once known and checked to be ours.
	serverID string
	// addresses of the server's NICs, once all have one.
	addresses []string
	// initialized are the allowed addresses that all NICs were seen to carry, as
	// a fingerprint of what was wanted.
	initialized string
	// absent is when a look-up began that saw no server of the machine.
	absent time.Time
	// touched is when the entry was last written.
	touched time.Time
}

// ledger remembers what this process last did for each machine. The manager's
// next call comes from a cache that may not have seen the last one's answer, and
// an answer may be lost on its way: the ledger is what keeps both from making a
// second server.
type ledger struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[ledgerKey]*entry
	swept   time.Time
}

func newLedger(clock clock.PassiveClock) *ledger {
	return &ledger{clock: clock, entries: map[ledgerKey]*entry{}}
}

// get returns a copy of the machine's entry; the zero entry if there is none.
func (l *ledger) get(key ledgerKey) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, ok := l.entries[key]; ok {
		return *found
	}
	return entry{}
}

// update changes the machine's entry.
func (l *ledger) update(key ledgerKey, change func(*entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	found, ok := l.entries[key]
	if !ok {
		found = &entry{}
		l.entries[key] = found
	}
	change(found)
	found.touched = now
	l.sweep(now)
}

// claim notes a POST that is about to be sent, unless another call sends one or did
// so since seen was read: then it returns false. The caller ends posting.
func (l *ledger) claim(key ledgerKey, seen entry) bool {
	claimed := false
	l.update(key, func(e *entry) {
		if !e.posting && e.posted.Equal(seen.posted) && e.serverID == "" {
			e.posted, e.posting, claimed = l.clock.Now(), true, true
		}
	})
	return claimed
}

// forget ends the machine's entry: it was deleted.
func (l *ledger) forget(key ledgerKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
}

// sweep drops old entries now and then, so that the ledger stays small without a
// goroutine of its own.
func (l *ledger) sweep(now time.Time) {
	if now.Sub(l.swept) < ledgerLifetime/10 {
		return
	}
	l.swept = now
	for key, found := range l.entries {
		if now.Sub(found.touched) > ledgerLifetime {
			delete(l.entries, key)
		}
	}
}

// certainFrom is when a look-up must begin to see every request for the machine
// that may have been sent: this process's last one, and a predecessor's.
func (e *entry) certainFrom(settle time.Duration, predecessor time.Time) time.Time {
	if !e.posted.IsZero() && e.posted.Add(settle).After(predecessor) {
		return e.posted.Add(settle)
	}
	return predecessor
}

// answered says whether the machine's server is what the last POST made.
func (e *entry) answered() bool {
	return e.serverID != "" && !e.made.IsZero() && e.made.Equal(e.posted)
}

// lose forgets a server that is gone, but not that a POST was sent.
func (e *entry) lose() {
	e.serverID, e.made, e.addresses, e.initialized = "", time.Time{}, nil, ""
}
