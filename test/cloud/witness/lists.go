// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// listed checks a list of servers.
func (w *Witness) listed(e guard.Exchange) {
	if !e.Succeeded() {
		return
	}
	var body struct{ Items []api.Server }
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return
	}
	w.facts.list(e, len(body.Items))
	wanted, ok := selected(e.Query.Get("label_selector"))
	if !ok {
		return
	}
	shown, live := map[string]bool{}, map[string][]string{}
	for _, seen := range body.Items {
		shown[seen.ID] = true
		for key, value := range wanted {
			if seen.Labels.Get(key) != value {
				w.find("a list with the selector %s=%s shows a server without this label: the selector is ignored", key, value)
			}
		}
		if !w.ours(seen) {
			w.facts.stranger(seen)
			continue
		}
		w.listedOurs(seen, e)
		if seen.Live() {
			live[seen.Name] = append(live[seen.Name], seen.ID)
		}
	}
	for name, ids := range live {
		if len(ids) > 1 {
			w.find("%d servers of the name %s exist at a time (%s), after %s", len(ids), name, strings.Join(ids, ", "), w.asked(name))
		}
	}
	w.notListed(e, wanted, shown)
}

// listedOurs checks a server of this run in a list.
func (w *Witness) listedOurs(seen api.Server, e guard.Exchange) {
	s := w.servers[seen.ID]
	if s == nil {
		r := w.requests[seen.Name]
		switch {
		case r != nil && (r.inFlight > 0 || r.ended.After(e.Begin)):
			return // Its answer may be on the way.
		case r != nil && r.unknown > 0:
			r.unknown--
			s = w.know(seen.ID, r)
		default:
			w.find("a list shows a server %s (%s) that nobody asked for: %s", seen.ID, seen.Name, w.asked(seen.Name))
			return
		}
	}
	s.lastListed = e.Begin
	if s.listed.IsZero() {
		s.listed = e.End
	}
	s.deletingLists = s.deletingLists || seen.Status == api.StatusDeleting
	if !s.gone.IsZero() && seen.Live() && e.Begin.Sub(s.gone) > w.settle {
		w.find("a list shows server %s (%s) as %s %s after its deletion was accepted and GET answered 404",
			s.id, s.name, seen.Status, span(s.gone, e.Begin))
	}
	w.seen(s, seen, e)
}

// notListed checks what a list does not show although it was asked for. It is lag, or a
// hiccup, up to settle.
func (w *Witness) notListed(e guard.Exchange, wanted map[string]string, shown map[string]bool) {
	for _, s := range w.servers {
		if shown[s.id] || !s.asked.IsZero() || !e.Begin.After(s.posted) || !s.matches(wanted) {
			continue
		}
		if s.lastListed.IsZero() {
			s.missedList = e.Begin
		} else {
			w.facts.hiccup = max(w.facts.hiccup, e.Begin.Sub(s.lastListed))
		}
		since := s.posted
		if s.lastListed.After(since) {
			since = s.lastListed
		}
		if late := e.Begin.Sub(since); late > w.settle {
			w.find("a list with the selector %q does not show server %s (%s), which matches it, %s after it was made or last shown; the driver's settle is %s",
				e.Query.Get("label_selector"), s.id, s.name, span(since, e.Begin), w.settle)
		}
	}
}

// matches compares with the labels that were sent.
func (s *server) matches(wanted map[string]string) bool {
	for key, value := range wanted {
		if s.changed[key] || s.labels[key] != value {
			return false
		}
	}
	return true
}
