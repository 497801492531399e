// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
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
	rowOdd404    = "A 404 for a server that exists is the exception: the driver asks for 15 s"
	rowBoot      = "A server boots within the creation timeout, at most 10 min in one call"
	rowDeleting  = "A DELETE shows as DELETING within 15 s"
	rowGoneGET   = "A deleted server is gone within minutes, to GET"
	rowGoneList  = "A deleted server is gone within minutes, to lists"
	rowDelete    = "DELETE is accepted in any status, CREATING among them"
	rowAfter     = "GET after a deletion answers 404, or 403"
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
	rowGET, rowList, rowOdd404, rowBoot, rowDeleting, rowGoneGET, rowGoneList, rowDelete, rowAfter, RowParts, rowBootable,
	RowTwin, RowSelectors, RowSlashes, RowManyLabel, RowMetadata, rowOpenStack, rowWindow, RowUserData,
	RowConsole, rowStatus, rowError, rowQuota, RowCodes, rowRequestID, rowHeaders, rowAnswers,
}

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
	if g.rows[row] == nil {
		g.rows[row] = counts{}
	}
	g.rows[row][Redact(seen)]++
}

// measure notes what each exchange shows.
func (g *Guard) measure(e Exchange) {
	answer := "no answer"
	switch {
	case e.Succeeded():
		answer = fmt.Sprint(e.Status)
	case e.Status != 0:
		answer = fmt.Sprintf("%d %s %s", e.Status, cmp.Or(e.Header.Get("Content-Type"), "(no type)"), e.Text())
	}
	g.note(rowAnswers, e.Kind()+": "+answer)
	if e.Refused() && strings.Contains(strings.ToLower(string(e.Body)), "quota") {
		g.note(rowQuota, e.Kind()+": "+answer)
	}
	for _, header := range headers(e.Answer) {
		g.note(rowHeaders, header)
	}
	if e.SentID != "" && e.Status != 0 {
		g.note(rowRequestID, fmt.Sprintf("kept: %t", e.Header.Get(api.RequestID) == e.SentID))
	}
	if e.Kind() == GetVolume {
		switch volume := api.Item[map[string]any](e.Answer); {
		case e.Status == http.StatusForbidden:
			g.note(rowBootable, "not allowed")
		case volume != nil:
			g.note(rowBootable, fmt.Sprintf("of a boot volume: %v", volume["bootable"]))
		}
	}
}

// headers returns the names of an answer's headers, with the values of those about limits: others may have
// secrets.
func headers(a api.Answer) (shown []string) {
	for name := range a.Header {
		if lower := strings.ToLower(name); strings.Contains(lower, "limit") || lower == "retry-after" {
			name = fmt.Sprintf("%d with %s: %q", a.Status, name, a.Header.Get(name))
		}
		shown = append(shown, name)
	}
	slices.Sort(shown)
	return shown
}

// noteShown notes what an answer shows of the run's server.
func (g *Guard) noteShown(s *server, seen api.Server, e Exchange) {
	g.note(rowStatus, seen.Status)
	if seen.ErrorMessage != "" && s.errorMessage == "" {
		s.errorMessage = seen.ErrorMessage
		g.note(rowError, fmt.Sprintf("%s: %q", seen.Status, seen.ErrorMessage))
	}
	if e.Kind() == ListServers && seen.MaintenanceWindow != nil {
		g.note(rowWindow, "of a server of the run")
	}
}

// noteStranger notes what a server of somebody else says about metadata, and nothing else of it.
func (g *Guard) noteStranger(seen api.Server) {
	shows := func(fields map[string]any) bool {
		isTag := func(key string) bool { return strings.HasPrefix(key, "kubernetes.io-cluster-") }
		return slices.ContainsFunc(slices.Collect(maps.Keys(fields)), isTag)
	}
	g.note(rowOpenStack, fmt.Sprintf("a server that is not the run's shows kubernetes.io-cluster-…: "+
		"%t in metadata, %t in labels", shows(seen.Metadata), shows(seen.Labels)))
	if seen.MaintenanceWindow != nil {
		g.note(rowWindow, "of a server that is not the run's")
	}
}

// span is when something happened: after the last answer that did not show it began, and before the first
// that did came.
type span struct{ last, first time.Time }

// measure notes for a row whether an answer shows what happens to a server once.
func (s *server) measure(row string, e Exchange, happened bool) {
	is := s.spans[row]
	switch {
	case !is.first.IsZero():
	case happened:
		is.first = e.End
	default:
		is.last = e.Begin
	}
	s.spans[row] = is
}

// spans shows a row's spans of all servers, the shortest first.
func (g *Guard) spans(row string, since func(*server) time.Time) string {
	type duration struct{ from, to float64 }
	var all []duration
	for _, s := range g.servers {
		if is, began := s.spans[row], since(s); !is.first.IsZero() && !began.IsZero() {
			from := max(is.last.Sub(began), 0)
			all = append(all, duration{from.Seconds(), max(is.first.Sub(began), from).Seconds()})
		}
	}
	slices.SortFunc(all, func(a, b duration) int { return cmp.Compare(a.to, b.to) })
	var texts []string
	for _, is := range all {
		texts = append(texts, fmt.Sprintf("%.1f–%.1f s", is.from, is.to))
	}
	return strings.Join(texts, ", ")
}

// Row is one assumption about the API, or what is not known of it, and what the run has measured: "" if
// nothing.
type Row struct{ Assumption, Seen string }

// Rows returns what was measured up to now.
func (g *Guard) Rows() (measured []Row) {
	g.mu.Lock()
	defer g.mu.Unlock()
	posted := func(s *server) time.Time { return s.posted }
	deleted := func(s *server) time.Time { return s.deleted }
	since := map[string]func(*server) time.Time{
		rowGET: posted, rowList: posted, rowBoot: posted, rowDeleting: deleted, rowGoneGET: deleted, rowGoneList: deleted,
	}
	for _, row := range rows {
		seen := g.rows[row].String()
		if began := since[row]; began != nil {
			seen = g.spans(row, began)
		}
		measured = append(measured, Row{row, seen})
	}
	return measured
}
