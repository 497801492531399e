// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// DefaultSettle is the default settle time: the longest time until the result of a sent request
	// appears in lists. A machine whose server appears later may get a second server.
	DefaultSettle = 30 * time.Second
	// recordLifetime is how long a record is kept after its last use.
	recordLifetime = time.Hour
)

// record is what this process knows of a Machine without asking the API. The manager's next call may
// come microseconds after the last one, from a cache that lacks its answer, and the answer to a POST
// may be lost.
type record struct {
	state state
	// serverID is the Machine's server; "" if unknown, as after a POST whose answer was lost.
	serverID string
	// nics are from reads of the server's NICs.
	nics connection
	// choice is the machine type and zone of the last POST; a GET may lack the zone.
	choice apis.Choice
	// postedAt is the end of the last POST that may have created a server; the zero time once that
	// server has been ready.
	postedAt time.Time

	uid types.UID
	// lastUsed is the time of the last call for the Machine.
	lastUsed time.Time
}

// state is what is known of a Machine's last POST and its server. The methods of record below are the
// events that lead from one state to another.
type state int

const (
	// stateNothing: no POST may have made a server. claim leads to statePosting.
	stateNothing state = iota
	// statePosting: a POST is in flight. postEnded leads back to stateNothing if it was refused, or
	// nothing of it was written, else to stateUnseen.
	statePosting
	// stateUnseen: a POST ended that may have made a server, and no read has shown one since. shown leads
	// to stateRunning, and claim, once a list shows none that began late enough, to statePosting.
	stateUnseen
	// stateRunning: a read has shown the server. unused leads to stateNothing, as in stateUnseen, once
	// the server is gone, being deleted, or discarded because it is in ERROR.
	stateRunning
)

// claim is the only way to a POST: if it returns true, the caller may send one. began is the start of
// the list that showed no server: it must be late enough to show the result of every earlier POST.
func (r *record) claim(began, certain time.Time, choice apis.Choice) bool {
	if r.serverID != "" || r.state == statePosting || began.Before(certain) {
		return false
	}
	r.state, r.choice = statePosting, choice
	return true
}

// postEnded notes the end of a claimed POST. mayExist reports whether it may have created a server,
// serverID is that of its answer.
func (r *record) postEnded(now time.Time, serverID string, mayExist bool) {
	r.state = stateNothing
	if mayExist {
		r.state, r.serverID, r.nics, r.postedAt = stateUnseen, serverID, connection{}, now
	}
}

// shown notes that a read has shown the Machine's server.
func (r *record) shown(serverID string) {
	if r.serverID != serverID {
		r.serverID, r.nics = serverID, connection{}
	}
	r.state = stateRunning
}

// unused notes that the Machine does not use a server any more.
func (r *record) unused(serverID string) {
	if r.serverID == serverID {
		r.state, r.serverID, r.nics = stateNothing, "", connection{}
	}
}

// certain returns the earliest start of a list that shows the server of the last POST.
func (r *record) certain(now time.Time, settle time.Duration) time.Time {
	switch r.state {
	case statePosting:
		return now.Add(settle)
	case stateUnseen:
		return r.postedAt.Add(settle)
	default:
		return time.Time{}
	}
}

// machineRef identifies a Machine's record. uid is "" if the request lacks it.
type machineRef struct {
	types.NamespacedName
	uid types.UID
}

// records has one record per Machine. A record ends with its Machine's deletion (forget) or
// recordLifetime after its last use. A restart loses all: certain in call.go allows for that.
type records struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	machines map[types.NamespacedName]*record
	swept    time.Time
}

func newRecords(clock clock.PassiveClock) *records {
	return &records{clock: clock, machines: map[types.NamespacedName]*record{}}
}

// change changes the Machine's record, and creates it if necessary. A new Machine of the same name
// takes over only the doubt about its predecessor's POST.
func (r *records) change(ref *machineRef, change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if now.Sub(r.swept) > recordLifetime/10 {
		r.swept = now
		maps.DeleteFunc(r.machines, func(_ types.NamespacedName, old *record) bool {
			return now.Sub(old.lastUsed) > recordLifetime
		})
	}
	known, ok := r.machines[ref.NamespacedName]
	if !ok {
		known = &record{uid: ref.uid}
		r.machines[ref.NamespacedName] = known
	}
	if ref.uid != "" && known.uid != ref.uid {
		before := *known
		*known = record{uid: ref.uid}
		if before.state == statePosting || before.state == stateUnseen {
			known.state, known.postedAt = before.state, before.postedAt
		}
	}
	known.lastUsed = now
	change(known)
}

// forget removes the record of a deleted Machine.
func (r *records) forget(ref *machineRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.machines[ref.NamespacedName]; ok && known.uid == ref.uid && known.state != statePosting {
		delete(r.machines, ref.NamespacedName)
	}
}
