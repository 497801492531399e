// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import "time"

// The numbers of an absence.
const (
	// expectedApart is the least time from the first to the last sign of an absence that
	// our DELETE, or a server in DELETING, lets expect.
	expectedApart = time.Second
	// unexpectedApart is that of any other absence, and the least time between the two
	// look-ups that prove that a machine has no server: a confused backend shows an empty
	// project for some seconds.
	unexpectedApart = 15 * time.Second
	// deletionPatience is how long a server may keep the state it had before its DELETE was
	// accepted, until the deletion counts as failed.
	deletionPatience = 15 * time.Second
	// deletionRepeat is after how long in DELETING a deletion counts as stuck, and is asked
	// for again.
	deletionRepeat = 2 * time.Minute
)

// signTimes are how long after its first sign an absence that nobody expects is looked at.
var signTimes = []time.Duration{time.Second, 3 * time.Second, 7 * time.Second, unexpectedApart}

// observation is what one read of servers shows.
type observation struct {
	// servers that were asked for.
	servers []Server
	// others says that a list shows other servers.
	others bool
	// listed says that it was a list.
	listed bool
	// began and ended are when it did, repeated attempts included: the answer is of a moment
	// between them. They are the zero time if it failed.
	began, ended time.Time
}

// server is the one that was asked for by its ID; nil if it is not shown.
func (s *observation) server() *Server {
	if len(s.servers) == 0 {
		return nil
	}
	return &s.servers[0]
}

// lookUp is what a look-up of the machine's servers shows.
type lookUp struct {
	servers []Server
	// wide says that the whole project was looked at.
	wide bool
	// began and ended are when it did.
	began, ended time.Time
}

// readKind is how a read is made.
type readKind int

const (
	byAny readKind = iota
	byGet
	byList
)

// progress is how far a deletion has come.
type progress int

const (
	// notAsked: nobody is known to have asked for it.
	notAsked progress = iota
	// asked: our DELETE was accepted.
	asked
	// underWay: a read showed the server DELETING.
	underWay
	// failed: after that, or too long after our DELETE, a GET showed another state.
	failed
)

// absence decides when one server counts as gone, and when its deletion must be asked for
// again on the way there.
//
// Gone is proved by a row of signs with no read between that shows the server. A sign is a
// GET that answers 404 in the API's form (isServerNotFound in errors.go), or a list that
// does not show the server although its labels match. The API is known for random 404s and
// for empty moments, and lists lag, so no sign is enough. From the end of its first read to
// the beginning of its last the row takes expectedApart or unexpectedApart, and it has
//
//   - a GET and a list, if it ends after noPostBefore;
//   - two GETs after our accepted DELETE, if it ends before;
//   - or two lists that show others, if a list showed the server DELETING after our DELETE.
type absence struct {
	// noPostBefore is when a list must begin to see the result of every POST.
	noPostBefore time.Time
	progress     progress
	// owed says that the last DELETE was not accepted: it is sent again with the next read.
	owed bool
	// retried says that the last accepted DELETE was sent because one before had failed.
	retried bool
	// sent is when the last DELETE was sent, accepted when one was accepted last.
	sent, accepted time.Time
	// before is the server's state before the last DELETE.
	before string
	// deletingListed says that a list showed the server DELETING after our DELETE.
	deletingListed bool
	// onlyGet says that a list which shows the server may be old.
	onlyGet bool
	row     signs
}

// signs are a row of signs: when the first of each kind ended, the zero time without one.
type signs struct {
	any, get, list time.Time
	// deletedGet is a GET after our accepted DELETE, othersListed a list that shows others.
	deletedGet, othersListed time.Time
	// byOthers says that the last sign is a list that shows others.
	byOthers bool
}

// add notes what a read shows, and returns true once the server is proved gone.
func (a *absence) add(seen *observation) (gone bool) {
	if server := seen.server(); server != nil {
		a.shown(server, seen)
		return false
	}
	a.onlyGet = a.onlyGet || !seen.listed
	if seen.listed && !a.countsList(seen.began) {
		return false
	}
	before := a.row
	first := func(at *time.Time, counts bool) {
		if counts && at.IsZero() {
			*at = seen.ended
		}
	}
	first(&a.row.any, true)
	first(&a.row.get, !seen.listed)
	first(&a.row.list, seen.listed && !seen.began.Before(a.noPostBefore))
	first(&a.row.deletedGet, !seen.listed && a.afterDelete(seen))
	a.row.byOthers = seen.listed && seen.others
	first(&a.row.othersListed, a.row.byOthers)
	return a.proves(&before, seen)
}

// countsList says whether a list that began then, and does not show the server, is a sign. A
// young server is in none yet, unless one has shown it.
func (a *absence) countsList(began time.Time) bool {
	return a.deletingListed || !began.Before(a.noPostBefore)
}

// proves says whether the sign ends the row before it with a proof.
func (a *absence) proves(before *signs, seen *observation) bool {
	since := func(at time.Time, least time.Duration) bool {
		return !at.IsZero() && seen.began.Sub(at) >= least
	}
	switch {
	case !since(before.any, a.apart()):
		return false
	case !a.row.get.IsZero() && !a.row.list.IsZero():
		return true // the list began after noPostBefore
	case seen.listed:
		return seen.others && a.deletingListed && since(before.othersListed, expectedApart)
	default:
		return seen.began.Before(a.noPostBefore) && since(before.deletedGet, expectedApart)
	}
}

func (a *absence) apart() time.Duration {
	if a.progress == notAsked {
		return unexpectedApart
	}
	return expectedApart
}

func (a *absence) afterDelete(seen *observation) bool {
	return !a.accepted.IsZero() && !seen.began.Before(a.accepted)
}

func (a *absence) shown(server *Server, seen *observation) {
	a.row = signs{}
	a.onlyGet = a.onlyGet && seen.listed
	if server.IsDeleting() {
		a.progress = underWay
		a.deletingListed = a.deletingListed || seen.listed && a.afterDelete(seen)
	}
}

// nextRead returns which read at that time can bring the row to its end.
func (a *absence) nextRead(at time.Time) readKind {
	switch {
	case a.row.any.IsZero() && !a.onlyGet, a.row.byOthers && a.deletingListed:
		return byAny
	case a.progress == notAsked && at.Before(a.row.any.Add(signTimes[1])):
		return byGet // one random 404 is cheap
	case !a.row.get.IsZero() && a.row.list.IsZero() && !at.Before(a.noPostBefore):
		return byList
	default:
		return byGet
	}
}

// nextSign returns when the next read is due, if the last one ended then; false without a
// row.
func (a *absence) nextSign(last time.Time) (due time.Time, ok bool) {
	switch {
	case a.row.any.IsZero():
		return time.Time{}, false
	case a.progress != notAsked:
		return last.Add(expectedApart), true
	}
	for _, after := range signTimes {
		if due := a.row.any.Add(after); due.After(last) {
			return due, true
		}
	}
	return later(a.noPostBefore, last.Add(expectedApart)), true
}

// step is what a deletion needs after a read.
type step int

const (
	waitOn step = iota
	askAgain
	// lookCloser: a list shows a deletion that has failed, but it may be old.
	lookCloser
	giveUp
)

// nextStep returns what a deletion needs after a read.
func (a *absence) nextStep(seen *observation, now time.Time) step {
	server := seen.server()
	switch {
	case a.owed:
		return askAgain
	case server == nil:
		return waitOn
	case server.IsDeleting():
		if now.Sub(a.sent) >= deletionRepeat {
			return askAgain
		}
		return waitOn
	case a.progress == notAsked:
		return askAgain
	case !a.hasFailed(server, now):
		return waitOn
	case seen.listed:
		return lookCloser
	case a.retried:
		return giveUp
	}
	a.progress = failed
	return askAgain
}

// hasFailed says whether the deletion of a server that is shown and not DELETING has
// failed: it is in ERROR since, or the patience is over.
func (a *absence) hasFailed(server *Server, now time.Time) bool {
	broken := server.Status == statusError && (a.before != statusError || a.progress == underWay)
	return broken || a.progress == failed || now.Sub(a.accepted) > deletionPatience
}

// deleteSent notes the answer to a DELETE of the server as it was seen last. One that is
// answered 404 was not accepted, and is no sign.
func (a *absence) deleteSent(isAccepted, notFound bool, status string, now time.Time) {
	a.sent = now
	a.owed = notFound
	if !isAccepted {
		return
	}
	a.retried = a.progress == failed
	a.progress, a.accepted, a.before = asked, now, status
}

// none decides when look-ups by name prove that a machine has no server.
//
// The last look-up must begin after noPostBefore. One that shows some of the machine's
// servers is believed about the rest; one that shows none is enough for a machine that
// nobody can have made a server for. Else it takes two in a row, with unexpectedApart from
// the end of the first to the beginning of the second, which looks at the whole project: a
// selector could be what is broken. For a machine that may have a server without labels the
// first does so, too (search.schedule).
type none struct {
	// first is when the row's first look-up ended; the zero time without one.
	first time.Time
}

// add notes a look-up, and returns true once it proves that there is no server beside those
// that it shows. In a deletion they are gone when the next one begins.
func (n *none) add(found *lookUp, noPostBefore time.Time, oneIsEnough bool) bool {
	first := n.first
	if first.IsZero() || len(found.servers) > 0 {
		n.first = found.ended
	}
	switch {
	case found.began.Before(noPostBefore):
		return false
	case oneIsEnough, len(found.servers) > 0:
		return true
	default:
		return found.wide && !first.IsZero() && found.began.Sub(first) >= unexpectedApart
	}
}

// next returns when the next look-up is due, and whether it has to look at the whole
// project. On the poll interval it looks until noPostBefore only: nothing new is expected to
// show after that.
func (n *none) next(noPostBefore, now time.Time, interval time.Duration, oneIsEnough bool) (due time.Time, wide bool) {
	due = now.Add(interval)
	switch {
	case n.first.IsZero(): // none has worked yet
		return due, false
	case !oneIsEnough && !now.Before(noPostBefore):
		return later(now, n.first.Add(unexpectedApart)), true
	case !oneIsEnough:
		last := later(noPostBefore, n.first.Add(unexpectedApart))
		return earlier(due, last), !due.Before(last)
	default:
		return earlier(due, later(noPostBefore, now)), false
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
