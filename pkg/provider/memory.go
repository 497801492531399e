// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// recordLifetime is how long a record is kept after its last use.
	recordLifetime = time.Hour
	// deletionLifetime is how long the time of a server's first accepted DELETE is kept: a stuck deletion takes hours.
	deletionLifetime = 24 * time.Hour
	// maxUnseenDoublings limits the wait for a class whose servers no read shows.
	maxUnseenDoublings = 4
)

// machineKey identifies a Machine across sessions: a rotated service-account key does not change
// it.
type machineKey struct{ namespace, machine string }

// place is the location of a request's servers.
type place struct{ endpoint, project, region string }

// machineRef is a call's Machine, and the place of its servers. uid and created are zero if the
// request lacks them.
type machineRef struct {
	machineKey
	place
	uid     string
	created time.Time
}

// record is this process's own knowledge of a Machine. The manager's next call may come
// microseconds after the last one, from a cache that lacks its answer, and the answer to a POST may
// be lost.
type record struct {
	place
	// uid and created are of the Machine that the last POST was for, or that adopted the server.
	uid     string
	created time.Time
	// serverID is the Machine's server; "" if unknown. isUnread reports whether it is known only from
	// the answer to the POST, so that no read has confirmed its owner.
	serverID string
	isUnread bool
	post     post
	// fault is why the last server ended in ERROR; nil if it did not, or once another is adopted. faulty is the last
	// that did.
	fault  error
	faulty string
	// tried are the class's choices without capacity in this round. It ends once the Machine has a
	// server, and with any error after which the manager does not call again within seconds.
	tried []apis.Choice
	nics  seenNICs
	// met is the time of this process's first call for a Machine of this name, used that of the last.
	// hadServer reports whether it has seen a server of that name, or a POST for such a Machine was sent
	// and has ended.
	met, used time.Time
	hadServer bool
}

// post is the last POST for a Machine.
type post struct {
	sent   time.Time
	class  string
	choice apis.Choice
	// ended is zero while the request is in flight.
	ended time.Time
	// named is the server in the answer; "" if the answer is lost, or named another machine's server.
	named string
	// isOpen reports whether the POST may have created a server that is not proved gone.
	isOpen bool
	// isReady reports whether its server has run and been set up.
	isReady bool
}

// seenNICs is the state of the NICs of a Machine's server, from reads.
type seenNICs struct {
	// addresses are the NICs' addresses, once each NIC has one.
	addresses []string
	// allowed is a fingerprint of the NICs' allowedAddresses; "" if none were seen.
	allowed string
}

func (p *post) isInFlight() bool { return !p.sent.IsZero() && p.ended.IsZero() }

// hasOpenPost reports whether a POST is in flight, or may have created a server that is not proved
// gone: even while that server is known and runs.
func (r *record) hasOpenPost() bool { return r.post.isOpen || r.post.isInFlight() }

// isOfAnother reports whether the record is of another Machine with the same name, by its UID. A
// request without a UID counts as the record's own.
func (r *record) isOfAnother(ref *machineRef) bool {
	return r.uid != "" && ref.uid != "" && r.uid != ref.uid
}

// isOfYounger reports whether the record is of a younger Machine with the same name.
func (r *record) isOfYounger(ref *machineRef) bool {
	return r.isOfAnother(ref) && !ref.created.IsZero() && ref.created.Before(r.created)
}

// own makes the record the Machine's. Another Machine's round is not its own.
func (r *record) own(ref *machineRef) {
	if r.isOfAnother(ref) {
		r.tried = nil
	}
	r.uid, r.created = ref.uid, ref.created
}

// isBound reports whether the Machine has, or may have, a server in the record's place.
func (r *record) isBound(ref *machineRef) bool {
	return !r.isOfAnother(ref) && (r.serverID != "" || r.hasOpenPost())
}

// setServer sets the Machine's server; "" for none. It drops the NICs of another server.
func (r *record) setServer(serverID string) {
	if r.serverID != serverID {
		r.serverID, r.isUnread, r.nics = serverID, false, seenNICs{}
	}
}

// memory has the records of a process, one per Machine. Its rule: never POST without a look-up that
// could have seen the result of every earlier POST (claim). A POST ends with accepted, refused, unsent
// or lost, and is open until the server in its answer was read and is proved gone, or until look-ups
// prove that there is no server. While it is open, a look-up that does not show its server proves
// nothing until settle has passed.
//
// A record belongs to one place. While it has a server or an open POST there, a request for another
// place does not change it (elsewhere), because the server would leak. Otherwise it moves to the
// request's place. It ends with the deletion of its Machine (forget), or an hour after its last
// use. A restart loses all records: for older Machines the driver then waits settle before it
// trusts an empty look-up.
type memory struct {
	clock clock.PassiveClock
	// settle is how long the API may take until a request shows in its lists.
	settle time.Duration

	mu      sync.Mutex
	records map[machineKey]*record
	// gone is when servers were proved gone: lists may still show them for settle. Entries live as
	// long as records.
	gone map[serverKey]time.Time
	// deleted is when a DELETE was first accepted for a server, by whichever call: the orphan
	// collector's may come first. Entries live for deletionLifetime.
	deleted map[serverKey]time.Time
	// unseen are the classes whose POSTs create servers that no read shows.
	unseen map[placedClass]unseenServers
	swept  time.Time
}

// placedClass identifies a class in a place.
type placedClass struct {
	place
	class string
}

// unseenServers delays a class's POSTs: an account that can create servers, but not see them, must
// not fill a project.
type unseenServers struct {
	// posts counts the POSTs since, and including, the first whose server no read has shown.
	posts int
	// until is when the next POST may be sent.
	until time.Time
}

// wait returns the time from a POST to the next one of the class: 1, 2, 4, 8, 16 minutes.
func (u unseenServers) wait() time.Duration { return time.Minute << min(u.posts-1, maxUnseenDoublings) }

type serverKey struct {
	place
	id string
}

func newMemory(clock clock.PassiveClock, settle time.Duration) *memory {
	return &memory{
		clock: clock, settle: settle,
		records: map[machineKey]*record{}, gone: map[serverKey]time.Time{}, deleted: map[serverKey]time.Time{},
		unseen: map[placedClass]unseenServers{},
	}
}

// meet records a call for a Machine, even a call with invalid inputs.
func (m *memory) meet(ref *machineRef) { m.apply(ref, func(*record) {}) }

// found records that a look-up shows servers of the Machine.
func (m *memory) found(ref *machineRef) { m.apply(ref, func(r *record) { r.hadServer = true }) }

// neverHadServer reports whether the Machine never had a server, provided that only this process
// has acted since it was created: the process has known the Machine since its first hour, and no
// Machine of its name had a server. A POST of which nothing was written made none.
func (m *memory) neverHadServer(ref *machineRef) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[ref.machineKey]
	return ok && !r.hadServer && !r.hasOpenPost() && r.met.Sub(ref.created) < recordLifetime-clockSkew
}

// get returns a copy of the Machine's record. For a record in another place it has only the owner.
func (m *memory) get(ref *machineRef) record {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[ref.machineKey]
	if !ok {
		return record{}
	}
	r.used = m.clock.Now()
	if r.place != ref.place {
		return record{uid: r.uid, created: r.created}
	}
	return *r
}

// elsewhere returns the place of the Machine's server or open POST, if it is not the request's.
func (m *memory) elsewhere(ref *machineRef) (place, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[ref.machineKey]
	if !ok || r.place == ref.place || !r.isBound(ref) {
		return place{}, false
	}
	return r.place, true
}

// certain returns the earliest start of a look-up that sees the results of the Machine's POSTs: an
// earlier one without a server proves nothing. It is the zero time if no POST is open.
func (m *memory) certain(ref *machineRef) time.Time {
	r := m.get(ref)
	return r.post.certain(m.clock.Now(), m.settle)
}

func (p *post) certain(now time.Time, settle time.Duration) time.Time {
	switch {
	case p.isInFlight():
		return now.Add(settle) // now is the earliest end
	case p.isOpen:
		return p.ended.Add(settle)
	default:
		return time.Time{}
	}
}

// claim is the only gate to a POST: on nil the caller may send one, which then is in flight.
// lookupBegan is the start of the look-up that showed no server. claim returns errClaimed if the
// look-up could not have seen the last POST's result, if a POST is in flight, or if the Machine has
// a server; and errUnseen while POSTs of a class whose servers no read shows are delayed.
func (m *memory) claim(ref *machineRef, class string, choice apis.Choice, lookupBegan time.Time) error {
	err := errClaimed
	m.take(ref, func(r *record) {
		now, key := m.clock.Now(), placedClass{ref.place, class}
		held, isUnseen := m.unseen[key]
		if now.Before(held.until) {
			err = errUnseen
			return
		}
		claimed := r.serverID == "" && !lookupBegan.Before(r.post.ended) && !lookupBegan.Before(r.post.certain(now, m.settle))
		if !claimed {
			return
		}
		err = nil
		r.own(ref)
		r.post = post{sent: now, class: class, choice: choice}
		if isUnseen { // whichever Machine asks next
			held.posts++
			held.until = now.Add(held.wait())
			m.unseen[key] = held
		}
	})
	return err
}

var errClaimed, errUnseen = errors.New("the look-up does not rule out another server"),
	errors.New("no read has shown a server of the class")

// neverSeen records that no read has shown the server in the answer to a POST.
func (m *memory) neverSeen(ref *machineRef, class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := placedClass{ref.place, class}
	if _, isUnseen := m.unseen[key]; !isUnseen {
		first := unseenServers{posts: 1}
		first.until = m.clock.Now().Add(first.wait())
		m.unseen[key] = first
	}
}

// saw records that a read shows servers.
func (m *memory) saw(where place, servers ...Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range servers {
		delete(m.unseen, placedClass{where, servers[i].Labels[StackitMachineClassLabel]})
	}
}

// accepted ends a POST whose answer named the server. The first read confirms its owner.
func (m *memory) accepted(ref *machineRef, serverID string) {
	m.change(ref, func(r *record) {
		r.post.ended, r.post.named, r.post.isOpen, r.hadServer = m.clock.Now(), serverID, true, true
		r.setServer(serverID)
		r.isUnread = true
	})
}

// refused ends a POST that cannot have created a server: the class's next one may follow.
func (m *memory) refused(ref *machineRef) {
	m.change(ref, func(r *record) { r.hadServer = true })
	m.unsent(ref)
}

// unsent is refused for a POST of which nothing was written: it counts as if there had been none.
func (m *memory) unsent(ref *machineRef) {
	m.change(ref, func(r *record) {
		r.post.ended = m.clock.Now()
		key := placedClass{ref.place, r.post.class}
		if held, isUnseen := m.unseen[key]; isUnseen && held.posts > 1 {
			m.unseen[key] = unseenServers{posts: held.posts - 1, until: r.post.ended}
		}
	})
}

// lost ends a POST that may have created a server.
func (m *memory) lost(ref *machineRef) {
	m.change(ref, func(r *record) { r.post.ended, r.post.isOpen, r.hadServer = m.clock.Now(), true, true })
}

// ready records that a server runs and is set up. It returns when the server's POST was accepted, once; the zero time
// if that was not the Machine's last POST.
func (m *memory) ready(ref *machineRef, serverID string) (accepted time.Time) {
	m.change(ref, func(r *record) {
		if r.post.named == serverID && !r.post.isReady {
			accepted, r.post.isReady = r.post.ended, true
		}
	})
	return accepted
}

// adopt records a server as the Machine's, after a read and a check that it is ours.
func (m *memory) adopt(ref *machineRef, serverID string) {
	m.take(ref, func(r *record) {
		r.setServer(serverID)
		r.own(ref)
		r.isUnread = false
		delete(m.deleted, serverKey{ref.place, serverID}) // that DELETE had no effect
		if r.faulty != serverID {
			r.fault = nil
		}
	})
}

// disown records that the server in the answer to the POST is another machine's: the POST is lost.
func (m *memory) disown(ref *machineRef, serverID string) {
	m.change(ref, func(r *record) { r.disown(serverID) })
}

func (r *record) disown(serverID string) {
	if r.post.named == serverID {
		r.post.named = ""
	}
	if r.serverID == serverID {
		r.setServer("")
	}
}

// drop records that the Machine does not use a server, which may still exist.
func (m *memory) drop(ref *machineRef, serverID string) {
	m.change(ref, func(r *record) {
		if r.serverID == serverID {
			r.setServer("")
		}
	})
}

// failed is drop for a server that ended in ERROR.
func (m *memory) failed(ref *machineRef, serverID string, fault error) {
	m.drop(ref, serverID)
	m.change(ref, func(r *record) { r.fault, r.faulty = fault, serverID })
}

// noCapacity records that there is no capacity for a choice.
func (m *memory) noCapacity(ref *machineRef, choice apis.Choice) {
	m.change(ref, func(r *record) { r.tried = append(slices.Clip(r.tried), choice) })
}

// endRound lets the Machine's next POST begin with the class's first choice again.
func (m *memory) endRound(ref *machineRef) { m.change(ref, func(r *record) { r.tried = nil }) }

// serverGone records that a server was proved gone. If no read ever showed it, the answer to the
// POST may have named a wrong one: the POST is lost. serverGone returns when the first DELETE was accepted; the zero
// time if none was, or if the server was proved gone before.
func (m *memory) serverGone(ref *machineRef, serverID string) (deleted time.Time) {
	m.change(ref, func(r *record) {
		switch {
		case r.serverID == serverID && r.isUnread:
			r.disown(serverID)
		case r.post.named == serverID:
			r.post.isOpen = false
		}
		if r.serverID == serverID {
			r.setServer("")
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	key := serverKey{ref.place, serverID}
	if m.gone[key].IsZero() {
		deleted = m.deleted[key]
	}
	m.gone[key] = m.clock.Now()
	return deleted
}

// wasGone reports whether a server was proved gone at most settle ago, and no GET has shown it since.
func (m *memory) wasGone(ref *machineRef, serverID string) bool {
	at := m.goneAt(ref, serverID)
	return !at.IsZero() && m.clock.Since(at) <= m.settle
}

// goneAt returns when a server was proved gone; the zero time if it was not, or a GET has shown it since.
func (m *memory) goneAt(ref *machineRef, serverID string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[serverKey{ref.place, serverID}]
}

// deleteAccepted records that a DELETE for a server was accepted.
func (m *memory) deleteAccepted(ref *machineRef, serverID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key := (serverKey{ref.place, serverID}); m.deleted[key].IsZero() {
		m.deleted[key] = m.clock.Now()
	}
}

// wasDeleted reports whether a DELETE of this process was accepted for a server that no Machine has
// adopted since.
func (m *memory) wasDeleted(ref *machineRef, serverID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.deleted[serverKey{ref.place, serverID}].IsZero()
}

// shown records that a GET shows a server: it is not gone, even if that was proved before.
func (m *memory) shown(ref *machineRef, serverID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone, serverKey{ref.place, serverID})
}

// provedNone closes the POST if a look-up that started at began could see its result: look-ups have
// proved that there are no servers but those shown.
func (m *memory) provedNone(ref *machineRef, began time.Time) {
	m.change(ref, func(r *record) {
		if !began.Before(r.post.ended.Add(m.settle)) {
			r.post.isOpen = false
		}
	})
}

// sawNICs records the state of the NICs of the Machine's server.
func (m *memory) sawNICs(ref *machineRef, serverID string, note func(*seenNICs)) {
	m.change(ref, func(r *record) {
		if r.serverID == serverID {
			note(&r.nics)
		}
	})
}

// forget removes the record of a deleted Machine. A younger Machine of the same name keeps its
// record.
func (m *memory) forget(ref *machineRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.records[ref.machineKey]; ok && !r.isOfYounger(ref) {
		delete(m.records, ref.machineKey)
	}
}

// change changes the Machine's record, unless it is for another place.
func (m *memory) change(ref *machineRef, change func(*record)) {
	m.apply(ref, func(r *record) {
		if r.place == ref.place {
			change(r)
		}
	})
}

// take is a change that first moves the record to the request's place, unless the Machine is bound
// to another one.
func (m *memory) take(ref *machineRef, change func(*record)) {
	m.apply(ref, func(r *record) {
		switch {
		case r.place == ref.place:
		case r.isBound(ref):
			return
		default:
			*r = record{place: ref.place, met: r.met, used: r.used, hadServer: r.hadServer || r.hasOpenPost()}
		}
		change(r)
	})
}

func (m *memory) apply(ref *machineRef, change func(*record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	r, ok := m.records[ref.machineKey]
	if !ok {
		r = &record{place: ref.place, met: now}
		m.records[ref.machineKey] = r
	}
	r.used = now
	change(r)
	m.sweep(now)
}

// sweep drops old entries now and then: so the memory stays small without a goroutine.
func (m *memory) sweep(now time.Time) {
	if now.Sub(m.swept) < recordLifetime/10 {
		return
	}
	m.swept = now
	maps.DeleteFunc(m.records, func(_ machineKey, r *record) bool { return now.Sub(r.used) > recordLifetime })
	maps.DeleteFunc(m.unseen, func(_ placedClass, u unseenServers) bool { return now.Sub(u.until) > recordLifetime })
	maps.DeleteFunc(m.gone, func(_ serverKey, at time.Time) bool { return now.Sub(at) > recordLifetime })
	maps.DeleteFunc(m.deleted, func(_ serverKey, at time.Time) bool { return now.Sub(at) > deletionLifetime })
}
