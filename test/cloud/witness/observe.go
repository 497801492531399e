// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// Begun implements guard.Observer.
func (w *Witness) Begun(e guard.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind() {
	case guard.CreateServer:
		r := w.request(e)
		r.inFlight++
	case guard.DeleteServer:
		// From here on a 404 is no wonder, whatever becomes of the request.
		if s := w.servers[e.ServerID()]; s != nil && s.asked.IsZero() {
			s.asked = e.Begin
		}
	}
}

// Observe implements guard.Observer.
func (w *Witness) Observe(e guard.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts.count(e)
	switch e.Kind() {
	case guard.CreateServer:
		w.created(e)
	case guard.GetServer:
		w.read(e)
	case guard.ListServers:
		w.listed(e)
	case guard.PatchServer:
		if s := w.servers[e.ServerID()]; s != nil {
			for key := range sentLabels(e) {
				s.changed[key] = true
			}
		}
	case guard.DeleteServer:
		w.deleted(e)
	}
}

func (w *Witness) created(e guard.Exchange) {
	r := w.request(e)
	r.inFlight--
	r.ended = e.End
	switch {
	case e.Succeeded():
		r.accepted++
		w.know(e.AnsweredID(), r)
	case e.Unknown():
		r.unknown++
	}
}

func (w *Witness) deleted(e guard.Exchange) {
	s := w.servers[e.ServerID()]
	if s == nil {
		return
	}
	if e.Succeeded() && s.deleted.IsZero() {
		s.deleted, s.deletedFrom = e.Begin, s.status
	}
	if !s.gone.IsZero() {
		w.facts.note(&w.facts.deletedAgain, answerForm(e))
	}
}

// read checks a GET of a server.
func (w *Witness) read(e guard.Exchange) {
	s := w.servers[e.ServerID()]
	switch {
	case s == nil:
	case e.Status == 404:
		w.missed(s, e)
	case e.Succeeded():
		seen := one(e.Body)
		if seen.ID != s.id {
			w.find("GET of server %s (%s) was answered with server %q", s.id, s.name, seen.ID)
			return
		}
		if s.got.IsZero() {
			s.got = e.End
		}
		s.deletingByGET = s.deletingByGET || seen.Status == api.StatusDeleting
		w.seen(s, seen, e)
	}
}

// missed checks a 404. Before the server was seen it is lag; after its deletion it is what is
// wanted.
func (w *Witness) missed(s *server, e guard.Exchange) {
	switch {
	case !s.asked.IsZero() && s.asked.Before(e.End):
		if s.gone.IsZero() && !s.deleted.IsZero() && s.deleted.Before(e.Begin) {
			s.gone = e.Begin
		}
	case s.active.IsZero():
		s.missedByGET = e.Begin
	default:
		w.find("GET of server %s (%s) answered 404 %s after it was seen ACTIVE, and nobody has deleted it",
			s.id, s.name, span(s.active, e.Begin))
	}
}
