// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package witness looks at every exchange with the API. It keeps what a run measures, and
// says at once when an answer breaks what the driver rests on: a server made twice, a label
// lost, a selector ignored, a 404 for a server that runs, a deleted server that comes back.
package witness

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// server is what the answers have said of a server that the run has asked for.
type server struct {
	id, name string
	// labels were sent with the POST; changed are keys that a PATCH has sent since.
	labels  map[string]string
	changed map[string]bool
	// posted is when the answer to the POST came.
	posted time.Time
	// The first moments at which answers had been asked for that showed: the server to GET
	// and to lists, and ACTIVE; and what came before: the last that did not show it.
	got, listed, active     time.Time
	missedByGET, missedList time.Time
	// lastListed is when the last list began that showed it.
	lastListed time.Time
	// deleted is when the first DELETE was sent that was accepted; asked, that was not refused.
	deleted, asked time.Time
	// deletedFrom is the status last seen before.
	status, deletedFrom string
	// gone is when the first GET after it began that answered 404.
	gone                         time.Time
	deletingByGET, deletingLists bool
	// added are keys of labels that nobody sent.
	added map[string]bool
}

// request counts the POSTs of a name.
type request struct {
	name     string
	labels   map[string]string
	inFlight int
	accepted int
	unknown  int
	// ended is when the last one was answered.
	ended time.Time
}

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

func (w *Witness) request(e guard.Exchange) *request {
	name := e.SentName()
	r := w.requests[name]
	if r == nil {
		r = &request{name: name}
		w.requests[name] = r
	}
	if labels := sentLabels(e); labels != nil {
		r.labels = labels
	}
	return r
}

// know takes a server for one that the request has made.
func (w *Witness) know(id string, r *request) *server {
	s := w.servers[id]
	if s == nil {
		s = &server{id: id, name: r.name, labels: r.labels, changed: map[string]bool{}, posted: r.ended, added: map[string]bool{}}
		w.servers[id] = s
	}
	return s
}

// asked says how often a server of the name was asked for.
func (w *Witness) asked(name string) string {
	r := w.requests[name]
	switch {
	case r == nil:
		return "no POST had this name"
	case r.accepted == 0 && r.inFlight == 1:
		return "1 POST of this name was sent, whose answer is not there yet"
	case r.accepted == 1:
		return "1 POST of this name was accepted"
	}
	return plural(r.accepted, "POSTs of this name were accepted")
}

// seen checks a server as an answer shows it.
func (w *Witness) seen(s *server, seen api.Server, e guard.Exchange) {
	s.status = seen.Status
	if s.active.IsZero() && seen.Status == api.StatusActive {
		s.active = e.End
	}
	var lost []string
	for key, value := range s.labels {
		if !s.changed[key] && seen.Labels.Get(key) != value {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		w.find("server %s (%s) was made with %d labels, and %s shows it without %s", s.id, s.name, len(s.labels), e.Kind(), strings.Join(lost, ", "))
	}
	for key := range seen.Labels {
		if _, sent := s.labels[key]; !sent && !s.changed[key] {
			s.added[key] = true
		}
	}
}

// span is a time between two moments as a reader wants it.
func span(from, to time.Time) time.Duration { return to.Sub(from).Round(100 * time.Millisecond) }

// ours says whether an answer shows a server of this run.
func (w *Witness) ours(seen api.Server) bool {
	return strings.HasPrefix(seen.Name, mark.Name(w.run, "")) || seen.Labels.Get(mark.ClusterLabel) == mark.Cluster(w.run)
}
