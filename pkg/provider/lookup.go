// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// lookup repeats look-ups of the Machine's servers by name and labels until these prove that there
// are no others (none).
type lookup struct {
	call *call
	// reads decides which errors end the call.
	reads wait
	polls polls
	// retryAt is when the next look-up may begin after a failed one.
	retryAt time.Time
	// row holds the consecutive look-ups since the last failed one.
	row []lookupResult
	// state is the text of a timeout.
	state string
}

// lookupResult is the result of a look-up.
type lookupResult struct {
	servers []Server
	// isWhole reports whether it read the whole project (or all servers with the machine label, if
	// that is too large), instead of only those with all of the Machine's labels.
	isWhole      bool
	began, ended time.Time
}

// doubt holds the reasons why an empty look-up may be wrong.
type doubt struct {
	// certain is the earliest start of a look-up that sees the result of every POST.
	certain time.Time
	// isNew reports whether this process knows every server that the Machine can have.
	isNew bool
	// mayLackLabels reports whether the Machine may have a server that was created before servers
	// had labels.
	mayLackLabels bool
}

// none reports whether look-ups, oldest first, prove that the Machine has no servers other than
// those in the last one, which must begin after certain. A look-up that shows servers is trusted
// about the rest, and one is enough for a new Machine. Otherwise the last one must read the whole
// project, minGap after the first: the selector may be broken, and a project may look
// empty for some seconds. If labels may be missing, the first must read the whole project, too. A
// look-up does not count if a later one shows servers, or if it is older than maxProofAge.
func none(row []lookupResult, d doubt) bool {
	if len(row) == 0 {
		return false
	}
	last := row[len(row)-1]
	switch {
	case last.began.Before(d.certain):
		return false
	case len(last.servers) > 0, d.isNew:
		return true
	}
	first, ok := firstOf(recentLookups(row, last.began), d)
	return ok && last.isWhole && last.began.Sub(first.ended) >= minGap
}

// recentLookups returns the look-ups that were not older than maxProofAge at the given time.
func recentLookups(row []lookupResult, then time.Time) []lookupResult {
	at := slices.IndexFunc(row, func(look lookupResult) bool { return then.Sub(look.ended) <= maxProofAge })
	if at < 0 {
		return nil
	}
	return row[at:]
}

// firstOf returns the look-up from which the time to the last one of the row counts; false if there
// is none yet.
func firstOf(row []lookupResult, d doubt) (lookupResult, bool) {
	for i := len(row) - 1; i > 0; i-- {
		if len(row[i].servers) > 0 {
			row = row[i:]
			break
		}
	}
	at := slices.IndexFunc(row, func(look lookupResult) bool { return look.isWhole || !d.mayLackLabels })
	if at < 0 {
		return lookupResult{}, false
	}
	return row[at], true
}

func (c *call) lookup() *lookup {
	return &lookup{
		call: c, reads: c.newWait(), polls: pollsFrom(c.clock.Now()),
		state: fmt.Sprintf("look-ups do not prove yet that machine %s has no other server: "+
			"an earlier create request may have created one", c.machine),
	}
}

// next makes the next look-up when it is due. It repeats a failed one until the failure ends the
// call.
func (l *lookup) next(ctx context.Context) (lookupResult, error) {
	c := l.call
	for {
		due, isWhole := l.plan(c.clock.Now())
		found, err := c.find(ctx, later(due, l.retryAt), isWhole)
		if err == nil {
			c.placeSeen.Store(true)
		}
		if ends := l.reads.afterRead(ctx, err, l.state); ends != nil || err == nil {
			return found, ends
		}
		now := c.clock.Now()
		l.retryAt = l.polls.after(now, now)
		if !isWhole {
			l.row = nil // what was seen before may have been another bad moment
		}
	}
}

// plan returns when the next look-up is due, and whether it reads the whole project. Look-ups on
// the poll interval end at certain: nothing new is expected to show after that.
func (l *lookup) plan(now time.Time) (due time.Time, isWhole bool) {
	if len(l.row) == 0 && l.retryAt.IsZero() {
		return time.Time{}, false
	}
	due = l.polls.after(now, now)
	d := l.doubt()
	l.row = recentLookups(l.row, now)
	first, ok := firstOf(l.row, d)
	next := later(first.ended.Add(minGap), d.certain)
	switch {
	case len(l.row) == 0:
		return due, false
	case d.isNew:
		return earlier(due, later(d.certain, now)), false
	case !ok:
		return now, true
	case due.Before(next) && now.Before(d.certain):
		return due, false
	default:
		return later(now, next), true
	}
}

// isSure adds a look-up, and reports whether the Machine has no servers other than those it shows.
// In a deletion these are gone by now.
func (l *lookup) isSure(found lookupResult) bool {
	c := l.call
	if !c.findable() {
		return true
	}
	l.row = append(l.row, found)
	if !none(l.row, l.doubt()) {
		return false
	}
	c.memory.provedNone(&c.ref, found.began)
	return true
}

func (l *lookup) doubt() doubt {
	c := l.call
	return doubt{certain: c.certain(), isNew: c.isNew(), mayLackLabels: !c.isYoung && c.serverID == ""}
}

// find makes one look-up of the Machine's servers: by its labels, and also by its name if it came
// from OpenStack and has no ProviderID. Servers that were proved gone are omitted. In the whole
// project, a server that may be the Machine's but lacks a label is an error, unless another one is
// certainly the Machine's, or it came from OpenStack.
func (c *call) find(ctx context.Context, due time.Time, isWhole bool) (lookupResult, error) {
	if !c.findable() {
		return lookupResult{}, nil
	}
	var all *list[Server]
	switch {
	case c.byName: // its server may have no label
		all = c.serversOf(nil).next(ctx, due, listsOnly)
	case isWhole:
		all, _ = c.listProject(ctx, due)
	default:
		all = c.listOwn(ctx, due, c.machineSelector())
	}
	isWhole = isWhole || c.byName
	found := lookupResult{isWhole: isWhole, began: all.began, ended: all.ended}
	if all.err != nil {
		return found, all.err
	}
	for _, server := range all.items {
		if (matches(&server, c.machineSelector()) || c.byName && server.Name == c.machine) && c.admits(&server) {
			found.servers = append(found.servers, server)
		}
	}
	if len(found.servers) > 0 {
		c.memory.found(&c.ref)
	}
	if !isWhole || c.fromOpenStack {
		return found, nil
	}
	return found, c.checkUnlabelled(all.items, found.servers)
}

// listOwn lists the servers of the scope or, if no other call reads that, or its lists fail, those
// that match the narrower selector.
func (c *call) listOwn(ctx context.Context, due time.Time, selector map[string]string) *list[Server] {
	lister := c.serversOf(c.scope())
	all := lister.next(ctx, due, ownList)
	if !all.isSingle {
		return all
	}
	own := &list[Server]{}
	own.err = lister.single(ctx, all, ownList, func(ctx context.Context) (err error) {
		own.began = c.clock.Now()
		own.items, err = c.listServers(ctx, selector)
		return err
	})
	own.ended = c.clock.Now()
	return own
}

// listProject lists all servers of the project. If such lists have been too large for tooLargeFor, it lists those
// with the machine label until the next one may be tried: that omits servers from before there were labels.
func (c *call) listProject(ctx context.Context, due time.Time) (all *list[Server], isWhole bool) {
	project := c.serversOf(nil)
	if tooLarge, isOff := project.isTooLarge(); !tooLarge || !isOff {
		return project.next(ctx, due, listsOnly), true
	}
	return c.serversOf(map[string]string{StackitMachineLabel: c.machine}).next(ctx, due, listsOnly), false
}

// checkUnlabelled returns an error if a server of the project may be the Machine's, but lacks a
// label that look-ups need, and none of those found is certainly the Machine's.
func (c *call) checkUnlabelled(all, found []Server) error {
	if slices.ContainsFunc(found, func(server Server) bool { return !server.IsDeleting() }) {
		return nil
	}
	own := c.record().serverID
	for i := range all {
		key, want, missing := c.missingLabel(&all[i])
		if missing && !all[i].IsDeleting() && all[i].ID != own && !c.memory.wasGone(&c.ref, all[i].ID) {
			return notOurs(&all[i], key, want)
		}
	}
	return nil
}

// withoutDeleting separates servers that stay from servers that are being deleted.
func withoutDeleting(servers []Server) (staying, deleting []Server) {
	for _, server := range servers {
		if server.IsDeleting() {
			deleting = append(deleting, server)
		} else {
			staying = append(staying, server)
		}
	}
	return staying, deleting
}

// theServer finds the Machine's only server by its ProviderID, the record or a look-up, and adopts it; errUnusable
// if there is none, or more than one.
func (c *call) theServer(ctx context.Context) (*tracked, error) {
	id := c.serverID
	if id == "" {
		id = c.record().serverID
	}
	if id == "" {
		found, err := c.lookup().next(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.checkSeveral(found.servers); err != nil {
			return nil, err
		}
		staying, _ := withoutDeleting(found.servers)
		if len(staying) != 1 {
			return nil, errUnusable
		}
		id = staying[0].ID
	}
	t := c.track(id)
	if err := t.awaitShown(ctx); err != nil {
		return nil, err
	}
	c.memory.adopt(&c.ref, id)
	return t, nil
}
