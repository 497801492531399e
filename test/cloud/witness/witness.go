// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package witness looks at every exchange with the API. It measures, and says at once when an
// answer breaks what the driver rests on, by the driver's own rules: a server made twice, its
// labels lost, not shown for longer than the driver waits, back after its deletion. What the
// driver lives with is counted.
package witness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
)

// Driver's numbers, from its page on design.
const (
	// unexpectedAbsence is how long a server must be missed that nobody deletes.
	unexpectedAbsence = 15 * time.Second
	attempt           = 30 * time.Second
)

// Witness is a guard.Observer.
type Witness struct {
	run string
	// settle is how long the driver lets the API take until a request shows in lists.
	settle time.Duration
	// broken is called with each finding, once.
	broken func(text string)

	mu       sync.Mutex
	servers  map[string]*server
	requests map[string]*request
	findings []string
	facts    facts
}

// server is what the answers have said of a server that the run has asked for.
type server struct {
	id, name string
	// labels were sent with the POST; changed are keys that a PATCH has sent since.
	labels  map[string]string
	changed map[string]bool
	// posted is when the answer to the POST came.
	posted time.Time
	// byGET and byList are how the two show it.
	byGET, byList sight
	// active is when the first answer came that showed it ACTIVE; beforeActive, when the last began
	// that did not yet.
	beforeActive, active time.Time
	// asked is when the first DELETE was sent; deleted, the first that was accepted, with the
	// status seen before.
	asked, deleted time.Time
	deletedFrom    string
	// beforeDeleting is when the last answer came that showed another status after the DELETE;
	// deleting, the first that showed DELETING.
	beforeDeleting, deleting time.Time
	status, errorMessage     string
	// afterwards are the statuses of GETs after the first that did not show it any more.
	afterwards counts
}

// sight is when a kind of read has shown a server, and when it has not.
type sight struct {
	// missed is when the last one began before any showed it, first, when the first that did came.
	missed, first time.Time
	// last is when the last one began that showed it; absent, the first after that which did not;
	// stillAbsent, the last of those.
	last, absent, stillAbsent time.Time
}

// gone says that two answers did not show it, a second apart: one says nothing.
func (s *sight) gone() bool {
	return !s.absent.IsZero() && s.stillAbsent.Sub(s.absent) >= time.Second
}

func (s *sight) shown(e guard.Exchange) {
	if s.first.IsZero() {
		s.first = e.End
	}
	s.last, s.absent, s.stillAbsent = e.Begin, time.Time{}, time.Time{}
}

func (s *sight) notShown(e guard.Exchange) {
	switch {
	case s.first.IsZero():
		s.missed = e.Begin
	case s.absent.IsZero():
		s.absent, s.stillAbsent = e.Begin, e.Begin
	default:
		s.stillAbsent = e.Begin
	}
}

// request counts the POSTs of a name that were not refused.
type request struct {
	// labels are those of the last one.
	labels map[string]string
	sent   int
	// shown are the servers of this name, by ID.
	shown map[string]bool
}

// New returns a witness of the run's exchanges.
func New(run string, settle time.Duration, broken func(text string)) *Witness {
	return &Witness{
		run: run, settle: settle, broken: broken,
		servers: map[string]*server{}, requests: map[string]*request{}, facts: newFacts(),
	}
}

// Findings returns what was found broken.
func (w *Witness) Findings() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.findings)
}

func (w *Witness) find(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.findings, text) {
		w.findings = append(w.findings, text)
		w.broken(text)
	}
}

// Failed returns what is known of the server of this name that ended in ERROR, if one did.
func (w *Witness) Failed(name string) (text string, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		if s.name == name && s.status == api.StatusError {
			return fmt.Sprintf("server %s ended in ERROR: %q", s.id, s.errorMessage), true
		}
	}
	return "", false
}

// Begun implements guard.Observer.
func (w *Witness) Begun(e guard.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind() {
	case guard.CreateServer:
		r := w.request(e)
		r.sent++
		r.labels = sentLabels(e)
	case guard.DeleteServer:
		// From here on a 404 is no wonder, whatever becomes of the request.
		if s := w.servers[e.ID()]; s != nil && s.asked.IsZero() {
			s.asked = e.Begin
		}
	}
}

func (w *Witness) request(e guard.Exchange) *request {
	r := w.requests[e.SentName()]
	if r == nil {
		r = &request{shown: map[string]bool{}}
		w.requests[e.SentName()] = r
	}
	return r
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
		if s := w.servers[e.ID()]; s != nil {
			for key := range sentLabels(e) {
				s.changed[key] = true
			}
		}
	case guard.DeleteServer:
		if s := w.servers[e.ID()]; s != nil && e.Succeeded() && s.deleted.IsZero() {
			s.deleted, s.deletedFrom = e.Begin, s.status
			// What was missed before is another matter.
			s.byGET.absent, s.byList.absent = time.Time{}, time.Time{}
		}
	}
}

func (w *Witness) created(e guard.Exchange) {
	r, made := w.request(e), e.Server()
	switch {
	case made.ID == "" && !e.Succeeded() && !e.Unknown():
		r.sent--
	case made.ID != "" && made.Name != "" && made.Name != e.SentName():
		w.facts.otherServers++
	case made.ID != "":
		s := w.know(made.ID, e.SentName(), r, e)
		s.labels, s.status = sentLabels(e), cmp.Or(s.status, made.Status)
	}
}

// know takes a server for one that the request has made.
func (w *Witness) know(id, name string, r *request, e guard.Exchange) *server {
	r.shown[id] = true
	s := w.servers[id]
	if s == nil {
		s = &server{id: id, name: name, labels: r.labels, changed: map[string]bool{}, posted: e.End, afterwards: counts{}}
		w.servers[id] = s
	}
	if len(r.shown) > r.sent {
		w.find("%d servers of the name %s, after %d POSTs of it: %s", len(r.shown), name, r.sent, keys(r.shown))
	}
	return s
}

// read checks a GET of a server.
func (w *Witness) read(e guard.Exchange) {
	s := w.servers[e.ID()]
	if s == nil {
		return
	}
	seen := e.Server()
	switch {
	case e.Status == 404, e.Status == 410, e.Status == 403 && !s.deleted.IsZero(), seen.Status == api.StatusDeleted:
		if !s.deleted.IsZero() {
			s.afterwards[fmt.Sprint(e.Status)]++
		}
		s.byGET.notShown(e)
		w.absent(s, e)
	case !e.Succeeded():
	case seen.ID != s.id:
		w.find("GET of server %s (%s) was answered with server %q", s.id, s.name, seen.ID)
	default:
		w.checkGone(s, seen, e)
		s.byGET.shown(e)
		w.seen(s, seen, e)
	}
}

// checkGone checks that a deleted server does not come back.
func (w *Witness) checkGone(s *server, seen api.Server, e guard.Exchange) {
	if s.deleted.IsZero() || !s.byGET.gone() || !seen.Live() {
		return
	}
	if late := e.Begin.Sub(s.byGET.absent); late > w.settle {
		w.find("%s shows server %s (%s) as %s, %s after GET did not show it any more",
			e.Kind(), s.id, s.name, seen.Status, round(late))
	}
}

// absent checks a GET that does not show a server that nobody deletes. One answer says nothing.
func (w *Witness) absent(s *server, e guard.Exchange) {
	if !s.asked.IsZero() || s.byGET.first.IsZero() {
		return
	}
	w.facts.odd404++
	if missed := e.Begin.Sub(s.byGET.absent); missed >= unexpectedAbsence {
		w.find("GET of server %s (%s) has answered 404 for %s, and nobody has deleted it", s.id, s.name, round(missed))
	}
}

// listed checks a list of servers.
func (w *Witness) listed(e guard.Exchange) {
	servers, ok := e.Servers()
	if !ok {
		return
	}
	w.facts.list(e, servers)
	wanted, plain := selected(e.Query.Get("label_selector"))
	shown := map[string]bool{}
	for _, seen := range servers {
		if seen.Status == api.StatusDeleted {
			continue // as the driver does
		}
		shown[seen.ID] = true
		if plain && !matches(seen.Labels, wanted) {
			w.facts.ignored++
		}
		if !w.ours(seen) {
			w.facts.stranger(seen)
			continue
		}
		w.listedOurs(seen, e)
	}
	if plain {
		w.notListed(e, wanted, shown)
	}
}

func (w *Witness) ours(seen api.Server) bool {
	return strings.HasPrefix(seen.Name, mark.Name(w.run, ""))
}

// listedOurs checks a server of this run in a list.
func (w *Witness) listedOurs(seen api.Server, e guard.Exchange) {
	s := w.servers[seen.ID]
	if s == nil {
		r := w.requests[seen.Name]
		if r == nil {
			w.find("a list shows server %s (%s), which nobody has asked for", seen.ID, seen.Name)
			return
		}
		s = w.know(seen.ID, seen.Name, r, e)
	}
	w.checkGone(s, seen, e)
	s.byList.shown(e)
	w.seen(s, seen, e)
}

// notListed checks what a list does not show although it was asked for. It is lag up to settle.
func (w *Witness) notListed(e guard.Exchange, wanted map[string]string, shown map[string]bool) {
	for _, s := range w.servers {
		if shown[s.id] || !e.Begin.After(s.posted) || !s.sent(wanted) {
			continue
		}
		since := s.posted
		if s.byList.last.After(since) {
			since = s.byList.last
		}
		s.byList.notShown(e)
		late := e.Begin.Sub(since)
		if !s.asked.IsZero() {
			continue
		}
		if !s.byList.first.IsZero() {
			w.facts.hiccup = max(w.facts.hiccup, late)
		}
		if late > w.settle {
			w.find("a list with the selector %q does not show server %s (%s) %s after it was made or last shown; settle is %s",
				e.Query.Get("label_selector"), s.id, s.name, round(late), w.settle)
		}
	}
}

// sent says that the POST has sent these labels, and nothing has changed them.
func (s *server) sent(wanted map[string]string) bool {
	for key := range wanted {
		if s.changed[key] {
			return false
		}
	}
	return matches(s.labels, wanted)
}

// seen checks a server as an answer shows it.
func (w *Witness) seen(s *server, seen api.Server, e guard.Exchange) {
	s.status = seen.Status
	w.facts.statuses[seen.Status]++
	if seen.ErrorMessage != "" && s.errorMessage == "" {
		s.errorMessage = seen.ErrorMessage
		w.facts.errorMessages[fmt.Sprintf("%s: %q", seen.Status, report.Redact(seen.ErrorMessage))]++
	}
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
	w.checkLabels(s, seen, e)
}

// checkLabels checks the labels by which the driver finds the server.
func (w *Witness) checkLabels(s *server, seen api.Server, e guard.Exchange) {
	var lost []string
	for _, key := range []string{mark.ClusterLabel, provider.StackitMachineLabel, provider.StackitMachineClassLabel} {
		if !s.changed[key] && seen.Labels[key] != s.labels[key] {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 && e.Begin.Sub(s.posted) > w.settle {
		w.find("server %s (%s) was made with labels, and %s shows it without %s %s after its POST",
			s.id, s.name, e.Kind(), strings.Join(lost, ", "), round(e.Begin.Sub(s.posted)))
	}
	for key := range seen.Labels {
		if _, was := s.labels[key]; !was && !s.changed[key] {
			w.facts.addedLabels[key]++
		}
	}
}

// round is a time as a reader wants it.
func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// Going returns the IDs of servers that are being deleted, as far as GET has told.
func (w *Witness) Going() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id, s := range w.servers {
		if !s.deleted.IsZero() && !s.byGET.gone() {
			ids = append(ids, id)
		}
	}
	return ids
}
