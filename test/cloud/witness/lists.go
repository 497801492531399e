// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

func one(body []byte) api.Server {
	var s api.Server
	_ = json.Unmarshal(body, &s) // shows in what is missing then
	return s
}

func sentLabels(e guard.Exchange) map[string]string {
	var sent struct{ Labels map[string]*string }
	_ = json.Unmarshal(e.Sent, &sent) // what is no JSON has no labels
	if sent.Labels == nil {
		return nil
	}
	labels := map[string]string{}
	for key, value := range sent.Labels {
		if value != nil {
			labels[key] = *value
		} else {
			labels[key] = ""
		}
	}
	return labels
}

// selected returns the labels that a selector asks for, and false for a selector of other
// forms than the driver's.
func selected(selector string) (map[string]string, bool) {
	labels := map[string]string{}
	if selector == "" {
		return labels, true
	}
	for part := range strings.SplitSeq(selector, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || strings.HasSuffix(key, "!") {
			return nil, false
		}
		labels[key] = strings.TrimPrefix(value, "=")
	}
	return labels, true
}

// listed judges a list of servers.
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

// listedOurs judges a server of this run in a list.
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

// notListed judges what a list does not show although it was asked for. It is lag, or a
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
