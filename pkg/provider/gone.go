// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import "time"

// signsApart is the least time between the two reads that prove a server gone.
const signsApart = time.Second

// observation is what one read of servers shows.
type observation struct {
	// servers that were asked for.
	servers []Server
	// others says that a list shows other servers.
	others bool
	// listed says that it was a list.
	listed bool
	// began is when the read began.
	began time.Time
}

// server is the one that was asked for by its ID; nil if it is not shown.
func (s *observation) server() *Server {
	if len(s.servers) == 0 {
		return nil
	}
	return &s.servers[0]
}

// absence decides when a server counts as gone: it collects signs until they prove it.
// The API is known for random 404s, and lists lag and may be empty by mistake: no sign is
// enough by itself.
//
// A sign is a GET that answers 404 in the API's form (isServerNotFound in errors.go), or a
// list that does not show the server. A read counts if it began after noPostBefore; a GET
// also counts after our DELETE was accepted. The proof is two signs in a row, begun at
// least signsApart from each other: a GET and a list; or two GETs, as long as no list
// counts; or two lists that show others, if a list showed the server DELETING after our
// DELETE.
type absence struct {
	// noPostBefore is when a read must begin to see the result of every POST.
	noPostBefore time.Time
	// deleted is when our last DELETE was accepted; the zero time before.
	deleted time.Time
	// deletingListed says that a list showed the server DELETING after that.
	deletingListed bool
	// last is the last sign; nil if the server was seen since.
	last *observation
}

// readKind is how a read is made.
type readKind int

const (
	byAny readKind = iota
	byGet
	byList
)

// nextRead returns which read can make the last sign a proof.
func (a *absence) nextRead(now time.Time) readKind {
	switch {
	case a.last == nil:
		return byAny
	case !a.last.listed && !now.Before(a.noPostBefore):
		return byList
	case a.last.listed && a.last.others && a.deletingListed:
		return byAny
	default:
		return byGet
	}
}

// add notes what a read shows, and returns true once the server is proved gone.
func (a *absence) add(seen observation) (gone bool) {
	if server := seen.server(); server != nil {
		a.last = nil
		a.deletingListed = a.deletingListed || seen.listed && server.IsDeleting() && a.afterDelete(&seen)
		return false
	}
	if seen.began.Before(a.noPostBefore) && (seen.listed || !a.afterDelete(&seen)) {
		return false // it says nothing
	}
	if a.last != nil && seen.began.Sub(a.last.began) < signsApart {
		return false
	}
	gone = a.last != nil && a.proves(a.last, &seen)
	a.last = &seen
	return gone
}

func (a *absence) afterDelete(seen *observation) bool {
	return !a.deleted.IsZero() && !seen.began.Before(a.deleted)
}

// proves says whether two signs in a row are the proof.
func (a *absence) proves(first, second *observation) bool {
	switch {
	case first.listed && second.listed:
		return a.deletingListed && first.others && second.others
	case !first.listed && !second.listed:
		return second.began.Before(a.noPostBefore)
	default:
		return true
	}
}
