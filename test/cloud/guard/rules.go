// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// The rules are the driver's: only what the driver cannot live with ends a run. One answer proves
// nothing: a rule is broken by the second answer that says so, and by an answer that is late enough.

// unexpectedAbsence is how long a server that nobody deletes must be missed, from pkg/provider/gone.go.
const unexpectedAbsence = 15 * time.Second

// server is what the answers have said of a server that the run has created.
type server struct {
	id, name string
	// labels were sent with the POST; changed are keys that a PATCH has sent since.
	labels  map[string]string
	changed map[string]bool
	// parted says that its parts are noted.
	parted bool
	// posted is when the answer to the POST came.
	posted time.Time
	// byGET and byList are how the two show it.
	byGET, byList sight
	// active is when the first answer came that showed it ACTIVE; beforeActive, when the last began
	// that did not yet.
	beforeActive, active time.Time
	// asked is when the first DELETE was sent; deleted, the first that was accepted.
	asked, deleted time.Time
	// beforeDeleting is when the last answer came that showed another status after the DELETE;
	// deleting, the first that showed DELETING.
	beforeDeleting, deleting time.Time
	status, errorMessage     string
}

// leaving reports whether its deletion was accepted, or the answer was lost and the server shows it.
func (s *server) leaving() bool {
	return !s.deleted.IsZero() || !s.asked.IsZero() && (s.status == api.StatusDeleting || !s.byGET.absent.IsZero())
}

// sight is when a kind of read has shown a server, and when it has not.
type sight struct {
	// missed is when the last one began before any showed it; first, when the first that did came.
	missed, first time.Time
	// last is when the last one began that showed it; absent and stillAbsent, the first and the last
	// in a row that did not; unlabelled, the first in a row that showed it without its labels.
	last, absent, stillAbsent, unlabelled time.Time
}

// gone reports whether two answers did not show it, a second apart.
func (s *sight) gone() bool { return !s.absent.IsZero() && s.stillAbsent.Sub(s.absent) >= time.Second }

func (s *sight) shown(e Exchange) {
	if s.first.IsZero() {
		s.first = e.End
	}
	s.last, s.absent, s.stillAbsent = e.Begin, time.Time{}, time.Time{}
}

func (s *sight) notShown(e Exchange) {
	if s.first.IsZero() {
		s.missed = e.Begin
	}
	if s.absent.IsZero() {
		s.absent = e.Begin
	}
	s.stillAbsent = e.Begin
}

// find ends the run with a finding.
func (g *Guard) find(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(g.findings, text) {
		g.findings = append(g.findings, text)
		g.cancel(errors.New(text))
	}
}

// Failed returns what is known of the server of this name that ended in ERROR, if one did.
func (g *Guard) Failed(name string) (text string, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.servers {
		if s.name == name && s.status == api.StatusError {
			return fmt.Sprintf("server %s ended in ERROR: %q", s.id, s.errorMessage), true
		}
	}
	return "", false
}

// read checks a GET of a server.
func (g *Guard) read(e Exchange) {
	s := g.servers[e.ID()]
	if s == nil {
		return
	}
	seen := api.Item[api.Server](e.Answer)
	switch {
	case e.Absent(!s.asked.IsZero()), seen.Status == api.StatusDeleted:
		s.byGET.notShown(e)
		g.checkAbsence(s, e)
	case !e.Succeeded():
	case seen.ID != s.id:
		g.note(rowOther, "GET showed another one")
	default:
		g.checkGone(s, seen, e)
		s.byGET.shown(e)
		g.seen(s, &s.byGET, seen, e)
	}
}

// checkAbsence checks a GET that does not show a server.
func (g *Guard) checkAbsence(s *server, e Exchange) {
	switch {
	case !s.asked.IsZero():
		g.note(rowAfter, fmt.Sprint(e.Status))
	case !s.byGET.first.IsZero():
		g.note(rowOdd404, "404 to a GET")
		if missed := e.Begin.Sub(s.byGET.absent); missed >= unexpectedAbsence {
			g.find("GET of server %s (%s) has answered 404 for %s, and nobody has deleted it", s.id, s.name, round(missed))
		}
	}
}

// checkGone checks that a deleted server does not come back.
func (g *Guard) checkGone(s *server, seen api.Server, e Exchange) {
	if s.deleted.IsZero() || !s.byGET.gone() || !seen.Live() {
		return
	}
	if late := e.Begin.Sub(s.byGET.absent); late > g.settle {
		g.find("%s shows server %s (%s) as %s, %s after GET did not show it any more",
			e.Kind(), s.id, s.name, seen.Status, round(late))
	}
}

// listed checks a list of servers.
func (g *Guard) listed(e Exchange) {
	servers, ok := api.Items[api.Server](e.Answer)
	if !ok {
		return
	}
	wanted, plain := selected(e.Query)
	shown := map[string]bool{}
	for _, seen := range servers {
		if seen.Status == api.StatusDeleted {
			continue // as the driver does
		}
		shown[seen.ID] = true
		if plain && !matches(seen.Labels, wanted) {
			g.note(rowSelector, "IGNORED: a server without it was shown")
		}
		r := g.requests[api.KindServer+seen.Name]
		if r == nil && g.servers[seen.ID] == nil {
			g.noteStranger(seen)
			continue
		}
		if g.servers[seen.ID] == nil {
			g.know(seen.ID, r, e)
		}
		s := g.servers[seen.ID]
		g.checkGone(s, seen, e)
		s.byList.shown(e)
		g.seen(s, &s.byList, seen, e)
	}
	for _, s := range g.servers {
		if plain && !shown[s.id] && e.Begin.After(s.posted) && s.sent(wanted) {
			g.notListed(s, e)
		}
	}
}

// notListed checks that a list misses a server no longer than settle.
func (g *Guard) notListed(s *server, e Exchange) {
	s.byList.notShown(e)
	if !s.asked.IsZero() {
		return
	}
	if !s.byList.first.IsZero() {
		g.notes.hiccup = max(g.notes.hiccup, e.Begin.Sub(s.byList.last))
	}
	if late := e.Begin.Sub(s.byList.absent); late > g.settle {
		g.find("a list with the selector %q does not show server %s (%s), as none for %s; settle is %s",
			e.Query.Get("label_selector"), s.id, s.name, round(late), g.settle)
	}
}

// sent reports whether the POST has sent these labels, and nothing has changed them.
func (s *server) sent(wanted map[string]string) bool {
	for key := range wanted {
		if s.changed[key] {
			return false
		}
	}
	return matches(s.labels, wanted)
}

// seen notes a server as an answer shows it.
func (g *Guard) seen(s *server, by *sight, seen api.Server, e Exchange) {
	s.status = seen.Status
	g.noteParts(seen)
	g.noteShown(s, seen)
	switch {
	case s.active.IsZero() && seen.Status == api.StatusActive:
		s.active = e.End
	case s.active.IsZero() && s.deleted.IsZero():
		s.beforeActive = e.Begin
	case !s.deleted.IsZero() && seen.Status == api.StatusDeleting && s.deleting.IsZero():
		s.deleting = e.End
	case !s.deleted.IsZero() && s.deleting.IsZero():
		s.beforeDeleting = e.Begin
	}
	g.checkLabels(s, by, seen, e)
}

// checkLabels checks the labels by which the driver finds the server.
func (g *Guard) checkLabels(s *server, by *sight, seen api.Server, e Exchange) {
	var lost []string
	for _, key := range []string{api.ClusterLabel, provider.StackitMachineLabel, provider.StackitMachineClassLabel} {
		if !s.changed[key] && seen.Labels[key] != s.labels[key] {
			lost = append(lost, key)
		}
	}
	switch {
	case len(lost) == 0:
		by.unlabelled = time.Time{}
	case by.unlabelled.IsZero():
		by.unlabelled = e.Begin
	case e.Begin.Sub(by.unlabelled) > g.settle:
		g.find("server %s (%s) was made with labels, and %s shows it without %s for %s",
			s.id, s.name, e.Kind(), strings.Join(lost, ", "), round(e.Begin.Sub(by.unlabelled)))
	}
}

// round is a time as a reader wants it.
func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// selected returns the labels that a selector asks for, and false for a selector of other forms than
// the driver's.
func selected(query url.Values) (labels map[string]string, plain bool) {
	labels = map[string]string{}
	selector := query.Get("label_selector")
	if selector == "" {
		return labels, true
	}
	for part := range strings.SplitSeq(selector, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || strings.ContainsAny(key, "! ") {
			return nil, false
		}
		labels[key] = value
	}
	return labels, true
}

// matches reports whether the labels have those wanted.
func matches(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}
