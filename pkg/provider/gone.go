// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import "time"

// The numbers of an absence.
const (
	// expectedApart is the least time from the first to the last sign of an absence that
	// our DELETE, or a server in DELETING, lets expect.
	expectedApart = time.Second
	// unexpectedApart is that of any other absence, and the least time between the look-ups
	// that prove that a machine has no server: a confused backend shows an empty project for
	// some seconds.
	unexpectedApart = 15 * time.Second
	// lateAfter is how much later than it could be the next sign or look-up of a row may end: what
	// lies further apart may be of two such moments. One attempt at a read takes 30 s at most.
	lateAfter = 30 * time.Second
	// mostRestarts is how often a row begins again since a sign or look-up of it is late: with an
	// API that is always slow it must end, too.
	mostRestarts = 2
	// listsAloneFor is for how long after our DELETE two lists without a GET are a proof: a
	// server that hangs for longer may have slid out of a list that is cut off.
	listsAloneFor = time.Minute
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
	// selected says that it was a list by the machine's own selector: none that may be cut off.
	selected bool
	// blind says that it was a list that selects by a label which the server does not have.
	blind bool
	// forbidden says that it was a GET which answered 403 after our DELETE.
	forbidden bool
	// failed is the error of a read that shows nothing, and is tried again.
	failed error
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
	breadth breadth
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
// Gone is proved by a row of signs with no read between that shows the server. A sign is a GET that
// answers 404 in the API's form (isServerNotFound in errors.go), after our accepted DELETE also 403,
// since some APIs answer so (the SDK's own waiter takes it for gone), or a list that does not show the
// server although its labels match. The API is known for random 404s and for empty moments, and lists
// lag, so no sign is enough. A late sign begins the row again (lateAfter): there may be one empty
// moment before an outage, and another after it. From the end of its first read to the beginning of
// its last the row takes expectedApart or unexpectedApart, and it has
//
//   - a GET and a list, if it ends after noPostBefore;
//   - two GETs that answer 404 after our accepted DELETE, if it ends before, or if no list can
//     show the server: one without a machine label, where lists of the project fail;
//   - two lists that show others, within listsAloneFor of our DELETE, if a list showed the
//     server DELETING since: this saves most deletions their GET;
//   - or, in a deletion while GETs fail, two lists unexpectedApart after noPostBefore: by the
//     machine's own selector after our accepted DELETE, since longer ones may be cut off; else both
//     show others, since an account that lost its role may get empty ones.
type absence struct {
	// noPostBefore is when a list must begin to see the result of every POST.
	noPostBefore time.Time
	progress     progress
	// owed says that the last DELETE was answered 404: it is sent again with the next read.
	owed bool
	// retried says that the last accepted DELETE was sent because one before had failed.
	retried bool
	// sent is when the last DELETE was sent, accepted when one was accepted last.
	sent, accepted time.Time
	// before is the server's state before the last DELETE.
	before string
	// deletingListed says that a list showed the server DELETING after our DELETE.
	deletingListed bool
	// deletedAt is when our first DELETE of a server that was not DELETING was accepted.
	deletedAt time.Time
	// onlyGet says that a list which shows the server may be old.
	onlyGet bool
	// selectable says that the machine's selector selects the server.
	selectable bool
	// isDeletion says that the call wants the server to be gone.
	isDeletion bool
	// unlistable says that no list can show the server: GETs decide alone.
	unlistable bool
	// getsFail says that the last GET failed, or answered 403, and avoidGet that it was the last
	// read: the next one is a list.
	getsFail, avoidGet bool
	row                signs
	// restarts is how often the row has begun again since a sign was late.
	restarts int
}

// signs are a row of signs: when the first of each kind ended, the zero time without one.
type signs struct {
	any, get, list time.Time
	// selected is a list by the machine's own selector, which counts when list does.
	selected time.Time
	// deletedGet is a GET after our accepted DELETE, othersListed a list that shows others.
	deletedGet, othersListed time.Time
	// byOthers says that the last sign is a list that shows others.
	byOthers bool
	// last is when the last sign began.
	last time.Time
}

// add notes what a read shows, and returns true once the server is proved gone.
func (a *absence) add(seen *observation) (gone bool) {
	a.avoidGet = seen.forbidden
	if !seen.listed {
		a.getsFail = seen.forbidden
	}
	if server := seen.server(); server != nil {
		a.shown(server, seen)
		return false
	}
	a.onlyGet = a.onlyGet || !seen.listed && !seen.forbidden
	a.unlistable = a.unlistable || seen.blind
	if seen.blind || seen.listed && !a.countsList(seen.began) {
		return false
	}
	if a.restarts < mostRestarts && !a.row.any.IsZero() && seen.ended.Sub(a.row.last) > unexpectedApart+lateAfter {
		a.row = signs{}
		a.restarts++
	}
	before := a.row
	a.noteSign(seen)
	return a.proves(&before, seen)
}

// noteSign adds a sign to the row.
func (a *absence) noteSign(seen *observation) {
	first := func(at *time.Time, counts bool) {
		if counts && at.IsZero() {
			*at = seen.ended
		}
	}
	first(&a.row.any, true)
	first(&a.row.get, !seen.listed)
	first(&a.row.list, seen.listed && !seen.began.Before(a.noPostBefore))
	first(&a.row.selected, seen.selected && !seen.began.Before(a.noPostBefore))
	first(&a.row.deletedGet, !seen.listed && !seen.forbidden && a.afterDelete(seen))
	a.row.byOthers = seen.listed && seen.others
	first(&a.row.othersListed, a.row.byOthers)
	a.row.last = seen.began
}

// countsList says whether a list that began then, and does not show the server, is a sign. A
// young server is in none yet, unless one has shown it.
func (a *absence) countsList(began time.Time) bool {
	return a.deletingListed || !began.Before(a.noPostBefore)
}

// proves says whether the sign ends the row before it with a proof.
func (a *absence) proves(before *signs, seen *observation) bool {
	switch {
	case !seen.comesAfter(before.any, a.apart()):
		return false
	case !a.row.get.IsZero() && !a.row.list.IsZero():
		return true // the list began after noPostBefore
	case seen.listed:
		return a.listsProve(before, seen)
	default:
		return (a.unlistable || seen.began.Before(a.noPostBefore)) && seen.comesAfter(before.deletedGet, expectedApart)
	}
}

// listsProve says whether a list ends a row without a GET.
func (a *absence) listsProve(before *signs, seen *observation) bool {
	switch {
	case seen.others && a.listsAlone(seen.began) && seen.comesAfter(before.othersListed, expectedApart):
		return true
	case !a.isDeletion || !a.getsFail || !seen.comesAfter(before.list, unexpectedApart):
		return false
	case a.selectable && !a.accepted.IsZero():
		return seen.selected && seen.comesAfter(before.selected, unexpectedApart)
	default:
		return seen.others && seen.comesAfter(before.othersListed, unexpectedApart)
	}
}

// comesAfter says whether the read began so long after then; false for the zero time.
func (s *observation) comesAfter(then time.Time, least time.Duration) bool {
	return !then.IsZero() && s.began.Sub(then) >= least
}

// listsAlone says whether lists without a GET are a proof at that time.
func (a *absence) listsAlone(at time.Time) bool {
	return a.deletingListed && !a.deletedAt.IsZero() && at.Sub(a.deletedAt) <= listsAloneFor
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
	a.row, a.restarts = signs{}, 0
	a.onlyGet = a.onlyGet && seen.listed
	if server.IsDeleting() {
		a.progress = underWay
		a.deletingListed = a.deletingListed || seen.listed && a.afterDelete(seen)
	}
}

// getFailed notes that a GET failed: the next read is a list.
func (a *absence) getFailed() { a.getsFail, a.avoidGet = true, true }

// nextRead returns which read at that time can bring the row to its end.
func (a *absence) nextRead(at time.Time) readKind {
	switch {
	case a.avoidGet, a.getsFail && !a.row.selected.IsZero():
		return byList
	case a.row.any.IsZero() && !a.onlyGet, a.row.byOthers && a.listsAlone(at):
		return byAny
	case a.progress == notAsked && at.Before(a.row.any.Add(signTimes[1])):
		return byGet // one random 404 is cheap
	case !a.row.get.IsZero() && a.row.list.IsZero() && !a.unlistable && !at.Before(a.noPostBefore):
		return byList
	default:
		return byGet
	}
}

// nextSign returns when the next read is due, if the last one ended then; false without a
// row, and once it could have ended.
func (a *absence) nextSign(last time.Time) (due time.Time, ok bool) {
	switch {
	case a.row.any.IsZero():
		return time.Time{}, false
	case a.progress != notAsked && !a.getsFail:
		return last.Add(expectedApart), true
	}
	for _, after := range signTimes {
		if due := a.row.any.Add(after); due.After(last) {
			return due, true
		}
	}
	return a.noPostBefore, a.noPostBefore.After(last) // else on the poll interval
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
	case seen.listed && !a.getsFail:
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
	if a.deletedAt.IsZero() && status != statusDeleting {
		a.deletedAt = now
	}
	a.retried = a.progress == failed
	a.progress, a.accepted, a.before = asked, now, status
}

// none decides when look-ups by name prove that a machine has no server.
//
// One that shows some of the machine's servers is believed about the rest. One that shows none is
// enough for a machine that nobody can have made a server for. Else it takes a row of them: one by
// the machine's selector and, unexpectedApart later, one of the whole project, since a selector
// could be what is broken. A machine may have a server from before there were labels, which only
// the project's lists show: then two of those lie so far apart. The last look-up must begin after
// noPostBefore. The row begins again after a look-up by label that fails (search.next in reads.go),
// and with one that is late (lateAfter), unless the one before showed some.
//
// Where lists of the project fail for long while those by label work (the project may be too large
// for one), two by the machine label alone take their place, over settle: else no machine would be
// made or deleted after a failover. Servers without a machine label are not seen then.
type none struct {
	mayLackLabels, withoutProject bool
	settle                        time.Duration
	// seen is how many look-ups the row has, last when the last of them ended.
	seen int
	last time.Time
	// empty is when the last of them began, zero if it showed some.
	empty time.Time
	// restarts is how often the row has begun again since a look-up was late.
	restarts int
}

// row is where the look-ups of a row look at least.
func (n *none) row() []breadth {
	switch {
	case n.withoutProject:
		return []breadth{bySelector, ofMachineLabel, ofMachineLabel}
	case n.mayLackLabels:
		return []breadth{bySelector, ofProject, ofProject}
	default:
		return []breadth{bySelector, ofProject}
	}
}

// apart is the least time from the row's last look-up to the next.
func (n *none) apart() time.Duration {
	switch {
	case n.withoutProject:
		return max(unexpectedApart, n.settle/2)
	case n.mayLackLabels && n.seen == 1:
		return 0 // the two of the project lie apart
	default:
		return unexpectedApart
	}
}

// add notes a look-up, and returns true once it proves that there is no server beside those
// that it shows. In a deletion they are gone when the next one begins.
func (n *none) add(found *lookUp, noPostBefore time.Time, oneIsEnough bool) bool {
	row := n.row()
	isCertain := !found.began.Before(noPostBefore)
	isLast := n.seen == len(row)-1
	isLate := n.seen > 0 && n.restarts < mostRestarts && !n.empty.IsZero() &&
		found.ended.Sub(n.empty) > max(n.apart(), unexpectedApart)+lateAfter
	if isLate {
		n.restarts++
	}
	switch {
	case n.seen == 0, isLate, len(found.servers) > 0:
		n.seen, n.last, n.empty = 1, found.ended, found.began
	case found.breadth >= row[n.seen] && found.began.Sub(n.last) >= n.apart() && (isCertain || !isLast):
		n.seen, n.last, n.empty = n.seen+1, found.ended, found.began
	}
	if len(found.servers) > 0 {
		n.empty = time.Time{}
	}
	return isCertain && (oneIsEnough || len(found.servers) > 0) || n.seen == len(row)
}

// next returns when the next look-up is due, and where it looks. On the poll interval it looks
// until noPostBefore only: nothing new is expected to show after that.
func (n *none) next(
	noPostBefore, now time.Time, interval time.Duration, oneIsEnough bool,
) (due time.Time, breadth breadth) {
	due = now.Add(interval)
	row := n.row()
	switch {
	case n.seen == 0: // none has worked yet
		return due, bySelector
	case oneIsEnough:
		return earlier(due, later(noPostBefore, now)), bySelector
	}
	next := n.last.Add(n.apart())
	if n.seen == len(row)-1 {
		next = later(next, noPostBefore)
	}
	if due.Before(next) && now.Before(noPostBefore) {
		return due, bySelector
	}
	return later(now, next), row[n.seen]
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
