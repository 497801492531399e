// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Rows of the report that the specs fill by Note.
const (
	RowParts     = "A server that goes takes its NIC and its boot volume with it, if deleteOnTermination was sent"
	RowSelectors = "Selectors of other forms than key=value are never sent; those that must exclude the server"
	RowSlashes   = "Labels may have keys such as kubernetes.io/cluster"
	RowManyLabel = "A server may have 256 labels"
	RowMetadata  = "Metadata that was sent shows"
	RowConsole   = "The console log can be read"
	RowTwin      = "Names of servers are not unique"
	RowUserData  = "userData over 64 KiB"
	RowCodes     = "What is wrong with a class is told by a code"
)

// Rows that are filled from all exchanges.
const (
	rowGET       = "A server that was just made is there for GET"
	rowList      = "Lists show a new server within settle, 30 s"
	rowHiccup    = "Lists do not lose a server that exists for longer than 15 s"
	rowOdd404    = "A 404 for a server that exists is the exception: the driver asks for 15 s"
	rowBoot      = "A server boots within the creation timeout, at most 10 min in one call"
	rowDeleting  = "A DELETE shows as DELETING within 15 s"
	rowGoneGET   = "A deleted server is gone within minutes, to GET"
	rowGoneList  = "A deleted server is gone within minutes, to lists"
	rowDelete    = "DELETE is accepted in any status, CREATING among them"
	rowAfter     = "GET after a deletion answers 404, or 403"
	rowOther     = "An answer shows the server that was asked for"
	rowSelector  = "A selector key=value selects; lists are checked again"
	rowStatus    = "Statuses of servers"
	rowError     = "errorMessage says why a server ended in ERROR"
	rowQuota     = "The body of a refusal for lack of quota"
	rowWindow    = "Lists show maintenanceWindow"
	rowOpenStack = "Metadata of servers from OpenStack shows as metadata"
	rowBootable  = "Volumes show bootable"
	rowRequestID = "An X-Request-Id that was sent is kept"
	rowHeaders   = "Headers of answers; the values of those about limits"
	rowAnswers   = "Answers by operation; errors are JSON with code and msg"
)

// rows are the rows of every report, in order. A row without an observation says "not met".
var rows = []string{
	rowGET, rowList, rowHiccup, rowOdd404, rowBoot, rowDeleting, rowGoneGET, rowGoneList, rowDelete, rowAfter,
	RowParts, rowBootable, RowTwin, rowOther, rowSelector, RowSelectors, RowSlashes, RowManyLabel, RowMetadata,
	rowOpenStack, rowWindow, RowUserData, RowConsole, rowStatus, rowError, rowQuota, RowCodes, rowRequestID,
	rowHeaders, rowAnswers,
}

// notes are observations, by row.
type notes struct {
	rows map[string]counts
	// once are the observations that count once a server.
	once map[string]bool
	// hiccup is the longest time for which lists did not show a server that they had shown.
	hiccup time.Duration
}

func newNotes() notes { return notes{rows: map[string]counts{}, once: map[string]bool{}} }

// counts are texts with how often each was seen.
type counts map[string]int

func (c counts) String() string {
	var parts []string
	for _, text := range slices.Sorted(maps.Keys(c)) {
		if c[text] > 1 {
			text += fmt.Sprintf(" (%d×)", c[text])
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Note adds an observation to a row.
func (g *Guard) Note(row, seen string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note(row, seen)
}

func (g *Guard) note(row, seen string) {
	if g.notes.rows[row] == nil {
		g.notes.rows[row] = counts{}
	}
	g.notes.rows[row][seen]++
}

// noteOnce adds an observation that counts once for each resource.
func (g *Guard) noteOnce(row, id, seen string) {
	if key := row + id + seen; !g.notes.once[key] {
		g.notes.once[key] = true
		g.note(row, seen)
	}
}

// measure notes what each exchange shows.
func (g *Guard) measure(e Exchange) {
	if e.Status == 0 {
		g.note(rowAnswers, e.Kind()+": no answer")
		return
	}
	g.note(rowAnswers, e.Kind()+": "+answerForm(e.Answer))
	if e.Refused() && strings.Contains(strings.ToLower(string(e.Body)), "quota") {
		g.note(rowQuota, fmt.Sprintf("%s: %d %q", e.Kind(), e.Status, e.Text()))
	}
	for name := range e.Header {
		if lower := strings.ToLower(name); strings.Contains(lower, "limit") || lower == "retry-after" {
			name = fmt.Sprintf("%d with %s: %q", e.Status, name, e.Header.Get(name))
		}
		g.note(rowHeaders, name)
	}
	if e.SentID != "" {
		answered := e.Header.Get(api.RequestID)
		seen := map[bool]string{true: "answered with another", false: "answered without"}[answered != ""]
		if answered == e.SentID {
			seen = "kept"
		}
		g.note(rowRequestID, seen)
	}
	if e.Kind() == GetVolume {
		switch volume := api.Item[map[string]any](e.Answer); {
		case e.Status == 403:
			g.noteOnce(rowBootable, "", "not allowed")
		case volume != nil:
			g.noteOnce(rowBootable, e.ID(), fmt.Sprintf("of a boot volume: %v", volume["bootable"]))
		}
	}
}

// answerForm is an answer's status and, of an error, the type and the beginning of its body.
func answerForm(a api.Answer) string {
	if a.Succeeded() {
		return fmt.Sprint(a.Status)
	}
	return Redact(fmt.Sprintf("%d %s %s", a.Status, cmp.Or(a.Header.Get("Content-Type"), "(no type)"), a.Text()))
}

// noteShown notes what an answer shows of the run's server.
func (g *Guard) noteShown(s *server, seen api.Server) {
	g.note(rowStatus, seen.Status)
	if seen.ErrorMessage != "" && s.errorMessage == "" {
		s.errorMessage = seen.ErrorMessage
		g.note(rowError, fmt.Sprintf("%s: %q", seen.Status, Redact(seen.ErrorMessage)))
	}
	if seen.MaintenanceWindow != nil {
		g.noteOnce(rowWindow, s.id, "of a server of the run")
	}
}

// noteStranger notes what a server of somebody else says about metadata, and nothing else of it.
func (g *Guard) noteStranger(seen api.Server) {
	g.noteOnce(rowOpenStack, seen.ID, "a server that is not the run's")
	if len(seen.Metadata) > 0 {
		g.noteOnce(rowOpenStack, seen.ID, "shows metadata")
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(seen.Metadata)), slices.Collect(maps.Keys(seen.Labels))) {
		if strings.HasPrefix(key, "kubernetes.io-cluster-") {
			g.noteOnce(rowOpenStack, seen.ID, "shows a key kubernetes.io-cluster-…")
		}
	}
	if seen.MaintenanceWindow != nil {
		g.noteOnce(rowWindow, seen.ID, "of a server that is not the run's")
	}
}

// Row is one assumption about the API, or what is not known of it, and what the run has measured: "" if
// nothing.
type Row struct{ Assumption, Seen string }

// Rows returns what was measured up to now.
func (g *Guard) Rows() (measured []Row) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[string]string{
		rowGET:  g.spans(func(s *server) span { return between(s.posted, s.byGET.missed, s.byGET.first) }),
		rowList: g.spans(func(s *server) span { return between(s.posted, s.byList.missed, s.byList.first) }),
		rowBoot: g.spans(func(s *server) span { return between(s.posted, s.beforeActive, s.active) }),
		rowDeleting: g.spans(func(s *server) span {
			return between(s.deleted, s.beforeDeleting, s.deleting)
		}),
		rowGoneGET:  g.spans(func(s *server) span { return between(s.deleted, s.byGET.last, s.byGET.absent) }),
		rowGoneList: g.spans(func(s *server) span { return between(s.deleted, s.byList.last, s.byList.absent) }),
	}
	if len(g.servers) > 0 {
		seen[rowHiccup] = "at most for " + round(g.notes.hiccup).String()
	}
	for _, row := range rows {
		measured = append(measured, Row{row, cmp.Or(seen[row], g.notes.rows[row].String())})
	}
	return measured
}

// Findings returns what was found broken.
func (g *Guard) Findings() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.findings)
}

// Cost says how long servers existed: from their POST to their DELETE or, without one, to now.
func (g *Guard) Cost(now time.Time, volumeGB int) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all time.Duration
	for _, s := range g.servers {
		end := s.deleted
		if end.IsZero() {
			end = now
		}
		all += end.Sub(s.posted)
	}
	return fmt.Sprintf("%d servers, %.1f server minutes and %.1f GB hours from their POST to their DELETE.",
		len(g.servers), all.Minutes(), all.Hours()*float64(volumeGB))
}

// span is when something happened, after something else: between the last time that it was looked for
// in vain and the first time that it was seen.
type span struct{ from, to time.Duration }

func between(since, last, first time.Time) span {
	if since.IsZero() || first.IsZero() {
		return span{}
	}
	from := max(last.Sub(since), 0)
	return span{from, max(first.Sub(since), from)}
}

// spans shows those of all servers, the shortest first.
func (g *Guard) spans(of func(*server) span) string {
	var all []span
	for _, s := range g.servers {
		if is := of(s); is.to > 0 {
			all = append(all, is)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return int(a.to - b.to) })
	var texts []string
	for _, is := range all {
		texts = append(texts, fmt.Sprintf("%.1f–%.1f s", is.from.Seconds(), is.to.Seconds()))
	}
	return strings.Join(texts, ", ")
}
