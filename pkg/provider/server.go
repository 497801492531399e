// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Poll intervals and proof times of one server.
const (
	// firstPoll is the time from a POST to the first read of its server: hardly any server runs
	// earlier, and most that find no host have failed by then. The interval to the next reads is the
	// time since the POST divided by pollShare, between minPoll and maxPoll.
	firstPoll, minPoll = 8 * time.Second, 4 * time.Second
	pollShare, maxPoll = 6, 10 * time.Second
	// firstDeletionPoll and minDeletionPoll are the same after a DELETE: most servers are gone within
	// 10 s.
	firstDeletionPoll, minDeletionPoll = 3 * time.Second, 3 * time.Second
	// minPollGap is the minimum time from an answer to the next read.
	minPollGap = time.Second
	// minExpectedGap is the minimum time between the reads that prove a server gone, if its deletion
	// was accepted or it was seen DELETING. minGap is the same for any other server, and for
	// the look-ups that prove that a machine has no server: an API may show an empty project for some
	// seconds.
	minExpectedGap, minGap = time.Second, 15 * time.Second
	// maxProofAge is how long a read counts: a read before an outage and one after it prove nothing
	// together.
	maxProofAge = time.Minute
	// listsAloneFor is how long after our DELETE two lists prove a server gone: a server that hangs
	// for longer may be missing from a truncated list.
	listsAloneFor = time.Minute
	// deletionTimeout is how long a server may keep its state after an accepted DELETE.
	deletionTimeout = 15 * time.Second
	// deletionRepeat is how long a server may stay DELETING before it is deleted again.
	deletionRepeat = 2 * time.Minute
	// refusedRepeat is the minimum time from a DELETE answered 403 to the next one, which is refused
	// again as a rule.
	refusedRepeat = 15 * time.Second
)

// signTimes are the delays of the next reads after the first one that did not show a server.
var signTimes = []time.Duration{time.Second, 3 * time.Second, 7 * time.Second, minGap}

// evidence is the kind of a read that did not show a server.
type evidence int

const (
	// getNotFound is a GET answered 404 or 410 in the API's form, about the server.
	getNotFound evidence = iota
	// getForbidden is a GET answered 403 after our accepted DELETE: some APIs answer so for deleted
	// servers.
	getForbidden
	// listOfOthers is a list that shows other servers, listOfNone an empty one.
	listOfOthers
	listOfNone
	// getFailed and listFailed are reads without an answer: they prove nothing.
	getFailed
	listFailed
)

// absentRead is a read that did not show the server.
type absentRead struct {
	evidence     evidence
	began, ended time.Time
}

// expectation is the knowledge of a server in addition to the reads that do not show it.
type expectation struct {
	// isExpected reports whether our DELETE was accepted, or the server was last seen DELETING.
	isExpected bool
	// listsAlone reports whether our DELETE was at most listsAloneFor ago, and the server was last
	// seen DELETING, in a list.
	listsAlone bool
	// listsLag reports whether the server is too young for lists to show it.
	listsLag bool
	// isDeletion reports whether the call wants the server gone; getsFail whether the last GET failed,
	// or was answered 403.
	isDeletion, getsFail bool
}

// proof is a set of reads that proves a server gone: one read of each of the kinds, the last at
// least apart after the first.
type proof struct {
	isExpected bool
	kinds      [][]evidence
	apart      time.Duration
	// provided is a further condition; nil means none.
	provided func(expectation) bool
}

var (
	anyList = []evidence{listOfOthers, listOfNone}
	others  = []evidence{listOfOthers}
	is404   = []evidence{getNotFound}
	is403   = []evidence{getForbidden}
)

// proofs are all ways to prove a server gone. An API answers 404 at random, lists lag, and a
// project looks empty for a moment, so no single read is enough. Empty lists count only beside a
// 404, or where nothing else is left: an account that lost its role may get them.
var proofs = []proof{
	{false, [][]evidence{is404, anyList}, minGap, nil},
	{false, three(others), minGap, func(e expectation) bool { return e.isDeletion && e.getsFail }},
	{true, [][]evidence{is404, anyList}, minExpectedGap, nil},
	{true, [][]evidence{is403, others}, minExpectedGap, nil},
	{true, [][]evidence{is404, is404}, minExpectedGap, func(e expectation) bool { return e.listsLag }},
	// This saves most deletions their GET.
	{true, [][]evidence{others, others}, minExpectedGap, func(e expectation) bool { return e.listsAlone }},
	{true, three(anyList), minGap, func(e expectation) bool { return e.isDeletion && e.getsFail }},
}

func three(kind []evidence) [][]evidence { return slices.Repeat([][]evidence{kind}, 3) }

// gone reports whether reads prove a server gone: all reads since the last one that showed it,
// oldest first. They include only lists that must have shown it (observation.counts). A read older
// than maxProofAge does not count.
func gone(reads []absentRead, e expectation) bool {
	return slices.ContainsFunc(proofs, func(p proof) bool {
		return p.isExpected == e.isExpected && (p.provided == nil || p.provided(e)) && p.holds(reads)
	})
}

// holds reports whether the reads fulfil the proof.
func (p *proof) holds(reads []absentRead) bool {
	var first, last absentRead
	missing := slices.Clone(p.kinds)
	for _, r := range reads {
		has := func(kind []evidence) bool { return slices.Contains(kind, r.evidence) }
		if !slices.ContainsFunc(p.kinds, has) || reads[len(reads)-1].began.Sub(r.ended) > maxProofAge {
			continue
		}
		if at := slices.IndexFunc(missing, has); at >= 0 {
			missing = slices.Delete(missing, at, at+1)
		}
		if first.ended.IsZero() {
			first = r
		}
		last = r
	}
	return len(missing) == 0 && last.began.Sub(first.ended) >= p.apart
}

// polls schedules the reads of a server, or of another thing that a call waits for: at fixed times
// after a POST, a DELETE or the start of the wait, regardless of other reads.
type polls struct {
	since time.Time
	// first is the time to the first read, least the minimum between two.
	first, least time.Duration
}

// after returns when the next read is due; began and ended are the last one's. A read, usually
// another caller's, replaces each that is due less than a third of an interval after its start.
func (p polls) after(began, ended time.Time) time.Time {
	due, interval := p.since.Add(p.first), p.least
	for due.Add(-interval/3).Before(began) || due.Before(ended.Add(minPollGap)) {
		interval = min(max(due.Sub(p.since)/pollShare, p.least), maxPoll)
		due = due.Add(interval)
	}
	return due
}

// pollsFrom returns the polls of a wait that begins now.
func pollsFrom(now time.Time) polls { return polls{now, minPoll, minPoll} }

// tracked is a server that a call reads until it runs or is proved gone.
type tracked struct {
	call *call
	id   string
	// reads and steps decide which errors end the call: reads for reading the server, steps for
	// changing it.
	reads, steps wait
	polls        polls
	// due is when the next read is due.
	due  time.Time
	last sighting
	// getOnly reports whether only a GET counts, because a list that shows the server may be outdated.
	getOnly bool
	// getsFail reports whether the last GET failed.
	getsFail bool
	// absent are the reads since the last one that showed the server, without a list that a GET followed at once.
	absent  []absentRead
	removal removal
	// missing describes what an ACTIVE server lacks, for the text of a timeout.
	missing string
}

// sighting is the server in the last read that showed it; server is nil before.
type sighting struct {
	server *Server
	// byList reports whether that read was a list, everListed whether any list has shown it.
	byList, everListed bool
}

// track returns the tracked server with the ID.
func (c *call) track(serverID string) *tracked {
	return &tracked{
		call: c, id: serverID, polls: pollsFrom(c.clock.Now()), reads: c.newWait(), steps: c.newWait(),
		getOnly: c.memory.wasGone(&c.ref, serverID),
	}
}

// trackShown is track for a server that was just shown; byList reports whether by a list.
func (c *call) trackShown(server *Server, byList bool) *tracked {
	t := c.track(server.ID)
	t.due = t.polls.since.Add(t.polls.first)
	t.show(server, byList)
	return t
}

// isNamed reports whether the request's ProviderID names the server: then its name may identify it.
func (t *tracked) isNamed() bool { return t.id == t.call.serverID }

// poll makes the next read when it is due. It returns nil if the read fails but may be repeated, or
// does not show the server; errGone if it proves the server gone; and the ownership check's error
// for a server that the call must not use.
func (t *tracked) poll(ctx context.Context) (*Server, error) {
	c := t.call
	seen := t.read(ctx)
	if now := c.clock.Now(); seen.err != nil {
		seen.began, seen.ended = now, now
	}
	t.due = t.polls.after(seen.began, seen.ended)
	if seen.evidence != getForbidden { // here it is evidence, not a refusal
		if err := t.reads.afterRead(ctx, seen.err, t.state()); err != nil || seen.err != nil {
			return nil, err
		}
	}
	if seen.isListed || seen.server != nil {
		c.placeSeen.Store(true)
	}
	if seen.server == nil {
		return nil, t.miss(&seen)
	}
	if t.getOnly && seen.isListed {
		t.absent = nil
		return nil, nil
	}
	t.show(seen.server, seen.isListed)
	if !seen.isListed {
		c.memory.shown(&c.ref, t.id)
	}
	return seen.server, c.enter(seen.server, t.isNamed())
}

// observation is the result of a read. counts reports whether the server's absence from it is a
// sign that it is gone.
type observation struct {
	server   *Server
	isListed bool
	counts   bool
	absentRead
	err error
}

// readKind is how the next read is made.
type readKind int

const (
	byAny readKind = iota
	byGet
	byList
)

// nextRead returns how the next read is made. After the first read that did not show the server,
// GETs and lists alternate: a proof needs both, and where one fails the other replaces it.
func (t *tracked) nextRead(now time.Time) readKind {
	if len(t.absent) == 0 {
		if t.getOnly {
			return byGet
		}
		return byAny
	}
	last := t.absent[len(t.absent)-1].evidence
	e := t.expectation(now)
	lists := lastLists(t.absent)
	switch {
	case last == getFailed, last == getForbidden:
		return byList
	case last == listFailed, last == listOfOthers && e.listsAlone:
		return byAny
	case lists > 0 && lists < 3 && e.getsFail && e.isDeletion: // a hanging GET takes long
		return byList
	case last == getNotFound && !e.listsLag:
		return byList
	default:
		return byGet
	}
}

// lastLists counts the lists at the end of the reads.
func lastLists(reads []absentRead) (count int) {
	for _, r := range slices.Backward(reads) {
		if !slices.Contains(anyList, r.evidence) {
			break
		}
		count++
	}
	return count
}

// read makes the next read when it is due: a list that others share, a GET, or both if the list
// does not show the server.
func (t *tracked) read(ctx context.Context) observation {
	kind := t.nextRead(later(t.due, t.call.clock.Now()))
	if kind == byList {
		return t.list(ctx, t.due)
	}
	if kind == byGet {
		if err := t.call.sleepUntil(ctx, t.due); err != nil {
			return observation{err: err}
		}
		return t.get(ctx, nil)
	}
	for {
		all := t.lister().next(ctx, t.due, ownGet)
		seen := t.inList(all, t.isInScope() || t.call.fromOpenStack)
		switch {
		case all.isSingle:
			return t.get(ctx, all)
		case seen.err != nil, seen.server != nil, seen.counts && t.last.server != nil:
			return seen
		case t.due.After(t.call.clock.Now()): // the list was made for others
		default:
			return t.get(ctx, nil) // at once: the list adds nothing to it
		}
	}
}

// get reads the server by its ID; answer is lister.next's, if that requested it.
func (t *tracked) get(ctx context.Context, answer *list[Server]) (seen observation) {
	c := t.call
	seen.counts = true
	seen.err = t.lister().single(ctx, answer, ownGet, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		seen.began = c.clock.Now()
		if seen.server, err = c.client.GetServer(ctx, t.id); err == nil {
			c.memory.saw(c.place, *seen.server)
		}
		return err
	})
	seen.ended = c.clock.Now()
	if ctx.Err() == nil {
		seen.err = unanswered(seen.err)
	}
	switch {
	case isServerNotFound(seen.err), seen.err == nil && seen.server.Status == statusDeleted:
		seen.server, seen.err, seen.evidence = nil, nil, getNotFound
	case isForbidden(seen.err) && t.wasAccepted():
		seen.server, seen.err, seen.evidence = nil, nil, getForbidden
		t.getOnly = c.memory.wasGone(&c.ref, t.id)
	case seen.err != nil && ctx.Err() == nil && !isSessionWide(seen.err):
		t.absent = append(t.absent, absentRead{getFailed, seen.began, seen.ended})
		t.getOnly = c.memory.wasGone(&c.ref, t.id) // the lists have to do
	}
	t.getsFail = seen.err != nil || seen.evidence == getForbidden
	return seen
}

// inList returns the observation of the server in a list; canShow reports whether the server's
// labels match the list's.
func (t *tracked) inList(all *list[Server], canShow bool) observation {
	seen := observation{isListed: true, err: all.err, absentRead: absentRead{listOfNone, all.began, all.ended}}
	if len(all.items) > 0 {
		seen.evidence = listOfOthers
	}
	if at := slices.IndexFunc(all.items, func(server Server) bool { return server.ID == t.id }); at >= 0 {
		seen.server = &all.items[at]
	}
	if all.err != nil && len(t.absent) > 0 {
		t.absent = append(t.absent, absentRead{listFailed, all.began, all.ended})
	}
	seen.counts = canShow && (t.last.everListed || !all.began.Before(t.call.certain()))
	return seen
}

// lister returns the lister of the scope, or of the project for a server from OpenStack without its
// labels.
func (t *tracked) lister() *lister[Server] {
	if c := t.call; c.fromOpenStack && !t.isInScope() {
		return c.serversOf(nil)
	}
	return t.call.serversOf(t.call.scope())
}

// isInScope reports whether lists of the call's scope show the server, by its known labels.
func (t *tracked) isInScope() bool {
	return t.last.server != nil && matches(t.last.server, t.call.scope())
}

// list returns a list that shows the server, if it exists: of the scope or, if that is too large,
// by the machine label; of the project if its labels are unknown.
func (t *tracked) list(ctx context.Context, due time.Time) observation {
	c := t.call
	if t.isInScope() || c.machine == "" {
		all := t.lister().next(ctx, due, listsOnly)
		if c.machine == "" || !isTooLarge(all.err) {
			return t.inList(all, true)
		}
	}
	byLabel := map[string]string{StackitMachineLabel: c.machine}
	isLabelled := t.last.server != nil && matches(t.last.server, byLabel)
	if isLabelled {
		return t.inList(c.serversOf(byLabel).next(ctx, due, listsOnly), true)
	}
	all, isWhole := c.listProject(ctx, due)
	return t.inList(all, isWhole || t.last.server == nil)
}

// show records a read that shows the server.
func (t *tracked) show(server *Server, isListed bool) {
	t.absent, t.getOnly = nil, false
	t.last = sighting{server: server, byList: isListed, everListed: t.last.everListed || isListed}
}

// miss records a read that does not show the server, and returns errGone if it is proved gone.
func (t *tracked) miss(seen *observation) error {
	c := t.call
	t.getOnly = t.getOnly || seen.evidence == getNotFound
	if !seen.counts {
		return nil
	}
	t.absent = append(t.absent, seen.absentRead)
	if gone(t.absent, t.expectation(seen.began)) {
		if known := c.record(); known.serverID == t.id && known.isUnread && t.last.server == nil {
			c.memory.neverSeen(&c.ref, c.class)
		}
		c.meters.observe(c.meters.deletion, c.class, c.memory.serverGone(&c.ref, t.id))
		return errGone
	}
	if due := t.nextSign(seen.ended); !due.IsZero() {
		t.due = due
	}
	return nil
}

func (t *tracked) expectation(at time.Time) expectation {
	r := &t.removal
	return expectation{
		isExpected: t.wasAccepted() || t.isDeleting(), isDeletion: r.isWanted, getsFail: t.getsFail,
		listsLag:   !t.last.everListed && at.Before(t.call.certain()),
		listsAlone: t.isDeleting() && t.last.byList && !r.first.IsZero() && at.Sub(r.first) <= listsAloneFor,
	}
}

// nextSign returns when the next read is due if the last one ended at the given time; the zero time
// means the poll interval.
func (t *tracked) nextSign(ended time.Time) time.Time {
	for _, after := range signTimes {
		if due := t.absent[0].ended.Add(after); due.After(ended) {
			return due
		}
	}
	if certain := t.call.certain(); certain.After(ended) {
		return certain
	}
	return time.Time{}
}

// sleepUntil waits until the given time; its error is the context's.
func (c *call) sleepUntil(ctx context.Context, then time.Time) error {
	if err := spi.Sleep(ctx, c.clock, then.Sub(c.clock.Now())); err != nil {
		return fmt.Errorf("waiting for a read: %w", err)
	}
	return nil
}

// state describes the last known state, for the text of a timeout.
func (t *tracked) state() string {
	switch server := t.last.server; {
	case server == nil && t.removal.isWanted && t.getsFail:
		return fmt.Sprintf("server %s cannot be read, and lists do not prove that it is gone", t.id)
	case server == nil:
		return fmt.Sprintf("server %s has not been read yet", t.id)
	case t.missing != "":
		return fmt.Sprintf("server %s is %s, but %s", t.id, server.Status, t.missing)
	default:
		return fmt.Sprintf("server %s is %s", t.id, server.Status)
	}
}

// until reads the server until done returns true, or it is proved gone (errGone).
func (t *tracked) until(ctx context.Context, done func(*Server) bool) (*Server, error) {
	for {
		server, err := t.poll(ctx)
		if err != nil {
			return nil, err
		}
		if server != nil && done(server) {
			return server, nil
		}
	}
}

// awaitShown reads the server until a read shows it (sighting), or proves it gone.
func (t *tracked) awaitShown(ctx context.Context) error {
	_, err := t.until(ctx, func(*Server) bool { return true })
	return err
}

// removal is the progress of a server's deletion.
type removal struct {
	// isWanted reports whether the call wants the server gone.
	isWanted bool
	// sent, accepted and first are the times of the last DELETE, of the last accepted one, and of the
	// first accepted one while the server was not DELETING.
	sent, accepted, first time.Time
	// wasRetried reports whether the last accepted DELETE was the repetition of one without effect.
	wasRetried bool
}

// wasAccepted reports whether a DELETE of this process was accepted, of this call or another.
func (t *tracked) wasAccepted() bool {
	return !t.removal.accepted.IsZero() || t.call.memory.wasDeleted(&t.call.ref, t.id)
}

// isDeleting reports whether the last read that showed the server showed it DELETING.
func (t *tracked) isDeleting() bool { return t.last.server != nil && t.last.server.IsDeleting() }

// sendDelete requests the deletion of the server as last seen. A DELETE that is answered 404 was
// not accepted, and proves nothing. None is sent, without an error, if the server now belongs to a
// younger Machine.
func (t *tracked) sendDelete(ctx context.Context) error {
	c := t.call
	if c.isOfYounger(t.id) { // the next read shows it
		return nil
	}
	err := c.client.DeleteServer(ctx, t.id)
	r, now := &t.removal, c.clock.Now()
	r.sent = now
	switch {
	case isServerNotFound(err):
		return nil
	case err != nil:
		return err
	case r.first.IsZero() && !t.isDeleting():
		r.first = now
	}
	t.polls = polls{now, firstDeletionPoll + c.spread(minDeletionPoll), minDeletionPoll}
	t.due = t.polls.since.Add(t.polls.first)
	r.wasRetried = !r.accepted.IsZero() && t.hasFailed(now)
	r.accepted = now
	c.memory.deleteAccepted(&c.ref, t.id)
	klog.V(2).InfoS("Server deletion requested", "machine", c.machine, "server", t.id)
	return nil
}

// advanceDeletion takes the next step of a deletion after a read, which showed server; nil for
// none.
func (t *tracked) advanceDeletion(ctx context.Context, server *Server) error {
	r, now := &t.removal, t.call.clock.Now()
	switch {
	case isForbidden(t.steps.lastError) && now.Sub(r.sent) < refusedRepeat:
		return nil
	case server == nil, server.IsDeleting() && now.Sub(r.sent) < deletionRepeat:
		return nil
	case server.IsDeleting(), r.accepted.IsZero():
	case !t.hasFailed(now):
		return nil
	case t.last.byList && !t.getsFail: // it may be old
		t.getOnly, t.due = true, time.Time{}
		return nil
	case r.wasRetried:
		return newError(ReasonServerBusy, "two DELETEs of server %s were accepted, but its status is still %s, "+
			"so the next call retries; the API's message: %s", t.id, server.Status, server.reason(t.call.spec))
	}
	return t.steps.afterStep(ctx, t.sendDelete(ctx), t.state())
}

// hasFailed reports whether the last accepted DELETE had no effect: the server is not DELETING after
// deletionTimeout.
func (t *tracked) hasFailed(now time.Time) bool {
	return !t.isDeleting() && now.Sub(t.removal.accepted) > deletionTimeout
}

// awaitGone reads the server until it is proved gone, and returns nil only then.
func (t *tracked) awaitGone(ctx context.Context) error {
	for {
		server, err := t.poll(ctx)
		if errors.Is(err, errGone) || errors.Is(err, errUnusable) { // the latter was never the machine's
			return nil
		}
		if err == nil {
			err = t.advanceDeletion(ctx, server)
		}
		if err != nil {
			return err
		}
	}
}
