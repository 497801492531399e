// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

const (
	// goneAfter is the time between the two GETs answered 404 after which a server counts as gone
	// although no DELETE for it was accepted: the API may answer one 404 by mistake.
	goneAfter = 15 * time.Second
	// unlistedAfter is the time between the two lists without a server after which it counts as gone,
	// unlistedWithin how long after its accepted DELETE such lists count.
	unlistedAfter, unlistedWithin = time.Second, time.Minute
	// effectTimeout is how long a server may keep its state after an accepted DELETE, stuckTimeout how
	// long it may stay DELETING, until the DELETE is repeated; refusedRepeat is the same for a DELETE
	// that was answered 403.
	effectTimeout, stuckTimeout, refusedRepeat = 15 * time.Second, 2 * time.Minute, 15 * time.Second
	// maxIgnored is how many accepted DELETEs may have no effect until the call ends.
	maxIgnored = 2
)

// watch is a server that a call reads until it runs or is gone. A call has one for each server.
type watch struct {
	call *call
	id   string
	// server is from the last read that showed it; nil before. byList reports whether that read was a
	// list, isListed whether any list has shown it.
	server           *Server
	byList, isListed bool
	// reads are the failures of reading the server, steps those of changing it.
	reads, steps *failures
	polls        polls
	// due is when the next read is due. needsGet reports whether it must be a GET, because a list may be
	// old.
	due      time.Time
	needsGet bool
	// notFound is the start of the first GET answered 404, unlisted that of the first list without the
	// server, since a read showed it; zero if there is none.
	notFound, unlisted time.Time
	// isGone reports whether the server is proved gone.
	isGone bool
	// sent is when the last DELETE was sent, accepted when the last accepted one was, and firstAccepted
	// the first one. ignored counts the accepted ones since the server was seen DELETING.
	sent, accepted, firstAccepted time.Time
	ignored                       int
	// isSurplus reports whether the Machine has another server, too, and its DELETE is not counted yet.
	isSurplus bool
	// missing describes what an ACTIVE server lacks, for the text of a timeout.
	missing string
}

// watch returns the call's watch of a server.
func (c *call) watch(serverID string) *watch {
	w, ok := c.watches[serverID]
	if !ok {
		w = &watch{call: c, id: serverID, polls: pollsFrom(c.clock.Now()), reads: c.newFailures(), steps: c.newFailures()}
		c.watches[serverID] = w
	}
	return w
}

// poll makes the next read when it is due. It returns nil if the read failed but may be repeated, or
// did not show the server; errGone if the server is gone; and the ownership check's error for a server
// that the call must not use.
func (w *watch) poll(ctx context.Context) (*Server, error) {
	c := w.call
	server, began, err := w.read(ctx)
	w.due = w.polls.after(began, c.clock.Now())
	switch {
	case errors.Is(err, errGone):
		return nil, w.gone()
	case isServerNotFound(err), err == nil && server.Status == statusDeleted:
		_ = w.reads.afterRead(ctx, nil, "")
		return nil, w.noteNotFound(began)
	}
	if ends := w.reads.afterRead(ctx, err, w.state()); ends != nil || err != nil {
		return nil, ends
	}
	c.placeSeen = true
	w.server, w.notFound, w.unlisted, w.needsGet = server, time.Time{}, time.Time{}, false
	if w.isDeleting() {
		w.ignored = 0
	}
	return server, c.checkRead(server)
}

// read reads the server when it is due: in a list, if enough calls share it, else, or if the list fails
// or does not show the server, by a GET. errGone: lists prove that it is gone.
func (w *watch) read(ctx context.Context) (server *Server, began time.Time, err error) {
	c := w.call
	if c.isShared() && w.notFound.IsZero() && !w.needsGet {
		if server, began, err = w.readInList(ctx); server != nil || err != nil {
			return server, began, err
		}
	}
	if err := c.sleepUntil(ctx, w.due); err != nil {
		return nil, c.clock.Now(), err
	}
	w.byList = false
	return c.getServer(ctx, w.id)
}

// readInList reads the server in the next list of its scope; it returns nil if a GET is needed. After
// our DELETE two lists prove that the server is gone, if they show others: a GET is not needed then.
func (w *watch) readInList(ctx context.Context) (server *Server, began time.Time, err error) {
	for servers := w.call.servers(); !servers.isFailing(); {
		all := servers.get(ctx, w.due)
		if all.err != nil {
			return nil, w.call.clock.Now(), all.err
		}
		if at := slices.IndexFunc(all.items, func(server Server) bool { return server.ID == w.id }); at >= 0 {
			w.isListed, w.byList = true, true
			return &all.items[at], all.began, nil
		}
		sinceDelete := all.began.Sub(w.firstAccepted)
		switch {
		case !w.isListed, len(all.items) == 0, all.began.Before(w.accepted), sinceDelete > unlistedWithin:
			return nil, all.began, nil
		case w.unlisted.IsZero():
			w.unlisted = all.began
		case all.began.Sub(w.unlisted) >= unlistedAfter:
			return nil, all.began, errGone
		}
		w.due = w.unlisted.Add(unlistedAfter)
	}
	w.call.servers().request(w.due) // others' lists show when it works again
	return nil, w.call.clock.Now(), nil
}

// noteNotFound notes a GET that was answered 404, and returns errGone if the server is gone: at once
// if it is being deleted.
func (w *watch) noteNotFound(began time.Time) error {
	switch {
	case !w.accepted.IsZero() || w.isDeleting():
		return w.gone()
	case began.Before(w.call.certain()): // it may be too young to show
		return nil
	case w.notFound.IsZero():
		w.notFound = began
	case began.Sub(w.notFound) >= goneAfter:
		return w.gone()
	}
	w.due = w.notFound.Add(goneAfter)
	return nil
}

// gone notes that the server is proved gone.
func (w *watch) gone() error {
	c := w.call
	w.isGone = true
	if known := c.record(); known.state == stateUnseen && known.serverID == w.id {
		c.noteUnseen(w.id)
	}
	c.records.change(&c.ref, func(known *record) { known.unused(w.id) })
	c.meters.observe(c.meters.deletion, c.class, w.firstAccepted)
	return errGone
}

func (w *watch) isDeleting() bool { return w.server != nil && w.server.IsDeleting() }

// state describes the last known state, for the text of a timeout.
func (w *watch) state() string {
	switch {
	case w.server == nil:
		return fmt.Sprintf("server %s has not been read yet", w.id)
	case w.missing != "":
		return fmt.Sprintf("server %s is %s, but %s", w.id, w.server.Status, w.missing)
	default:
		return fmt.Sprintf("server %s is %s", w.id, w.server.Status)
	}
}

// until reads the server until done returns true, or it is gone (errGone).
func (w *watch) until(ctx context.Context, done func(*Server) bool) (*Server, error) {
	for {
		server, err := w.poll(ctx)
		if err != nil || server != nil && done(server) {
			return server, err
		}
	}
}

// awaitShown reads the server until a read shows it.
func (w *watch) awaitShown(ctx context.Context) error {
	_, err := w.until(ctx, func(*Server) bool { return true })
	return err
}

// sendDelete requests the deletion of a server that was checked to be the Machine's.
func (w *watch) sendDelete(ctx context.Context) error {
	c := w.call
	err := c.client.DeleteServer(ctx, w.id)
	w.sent = c.clock.Now()
	if w.isSurplus {
		c.meters.duplicate(err)
		w.isSurplus = false
	}
	w.due = later(w.due, w.polls.after(w.sent, w.sent))
	if isServerNotFound(err) { // proves nothing: a read decides
		return nil
	}
	if err != nil {
		return err
	}
	w.accepted = w.sent
	w.ignored++
	if w.firstAccepted.IsZero() && !w.isDeleting() {
		w.firstAccepted = w.sent
	}
	w.polls = polls{w.sent, firstDeletionPoll + c.spread(minDeletionPoll), minDeletionPoll}
	w.due = w.sent.Add(w.polls.first)
	klog.V(2).InfoS("Server deletion requested", "machine", c.machine, "server", w.id)
	return nil
}

// isDeleteDue reports whether a DELETE must be sent for the server as the last read showed it.
func (w *watch) isDeleteDue() bool {
	now := w.call.clock.Now()
	switch {
	case w.sent.IsZero():
		return true
	case w.isDeleting():
		return now.Sub(w.sent) >= stuckTimeout
	case statusOf(w.steps.last) == http.StatusForbidden:
		return now.Sub(w.sent) >= refusedRepeat
	default:
		return w.accepted.IsZero() || now.Sub(w.accepted) > effectTimeout
	}
}

// stepToGone takes the next step of a deletion: a read when it is due, and a DELETE if one is due
// then. It returns true once the server is gone.
func (w *watch) stepToGone(ctx context.Context) (isGone bool, err error) {
	if w.server == nil || !w.sent.IsZero() {
		switch server, err := w.poll(ctx); {
		case errors.Is(err, errGone):
			return true, nil
		case err != nil || server == nil || !w.isDeleteDue():
			return false, err
		case w.byList && !w.isDeleting(): // the list may be old
			w.needsGet, w.due = true, time.Time{}
			return false, nil
		case w.ignored >= maxIgnored:
			return false, newError(ReasonServerBusy, "server %s is still %s although its DELETE was accepted %d times; "+
				"the next call sends it again", w.id, server.Status, w.ignored)
		}
	}
	return false, w.steps.afterStep(ctx, w.sendDelete(ctx), w.state())
}
