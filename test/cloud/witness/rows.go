// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
)

// Rows returns what was measured over all exchanges up to now.
func (w *Witness) Rows() []report.Row {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &w.facts
	row := func(assumption, seen string, where ...string) report.Row {
		return report.Row{Assumption: assumption, Seen: seen, Where: where}
	}
	limits := fmt.Sprintf("at most %d calls in a second", f.busiest())
	met := func(count int, text string) string {
		if count == 0 {
			return ""
		}
		return fmt.Sprintf(text, count)
	}
	return []report.Row{
		row("A server that was just made is there for GET",
			w.spans(appeared(func(s *server) sight { return s.byGET })), "pkg/provider/create.go"),
		row("Lists show a new server within settle, 30 s",
			w.spans(appeared(func(s *server) sight { return s.byList })), "pkg/provider/reads.go"),
		row("Lists do not lose a server that exists for longer than 15 s", "at most for "+round(f.hiccup).String(),
			"pkg/provider/gone.go"),
		row("A 404 for a server that exists is the exception: the driver asks for 15 s", met(f.odd404, "%d GETs"),
			"pkg/provider/gone.go"),
		row("A server boots within the creation timeout, at most 10 min in one call",
			w.spans(func(s *server) span { return between(s.posted, s.beforeActive, s.active) }), "pkg/provider/create.go"),
		row("A DELETE shows as DELETING within 15 s",
			w.spans(func(s *server) span { return between(s.deleted, s.beforeDeleting, s.deleting) }), "pkg/provider/delete.go"),
		row("A deleted server is gone within minutes, to GET",
			w.spans(func(s *server) span { return gone(s, s.byGET) }), "pkg/provider/gone.go"),
		row("A deleted server is gone within minutes, to lists",
			w.spans(func(s *server) span { return gone(s, s.byList) }), "pkg/provider/gone.go"),
		row("DELETE is accepted in any status", w.tally(func(s *server) string { return s.deletedFrom }),
			"pkg/provider/delete.go"),
		row("GET after a deletion answers 404, or 403", w.afterwards(), "pkg/provider/gone.go"),
		row("The answer to a POST shows the server that was asked for", met(f.otherServers, "%d show another one"),
			"pkg/provider/ownership.go"),
		row("A selector key=value selects; lists are checked again", met(f.ignored, "IGNORED: %d servers without it were shown"),
			"pkg/provider/reads.go"),
		row("An empty list is [] or null", f.emptyLists.String(), "pkg/provider/sdk_client.go"),
		row("Statuses of servers", f.statuses.String(), "pkg/provider/status.go"),
		row("errorMessage says why a server ended in ERROR", f.errorMessages.String(), "pkg/provider/errors.go"),
		row("The body of a refusal for lack of quota", f.quotaTexts.String(), "pkg/provider/errors.go"),
		row("The API adds labels of its own and keeps ours", f.addedLabels.String(), "pkg/provider/ownership.go"),
		row("Lists show maintenanceWindow", met(f.windows, fmt.Sprintf("%%d of %d servers in lists", f.listed)),
			"pkg/provider/metrics.go"),
		row("Metadata of servers from OpenStack shows as metadata", w.strangers(), "pkg/provider/openstack.go"),
		row("50 calls a second, 8 reads a second of a session, are not too many", limits, "pkg/spi/limits.go"),
		row("Retry-After may come with 429 and 503", f.retryAfter.String(), "pkg/spi/pace.go"),
		row("Headers of answers", f.headers.String(), "pkg/spi/metrics.go"),
		row("An attempt ends within 30 s", f.latencies(), "pkg/spi/transport.go"),
		row("Answers by operation", f.calls.String(), "pkg/spi/retry.go"),
		row("Errors are JSON with code and msg; refusals differ by status", f.failures.String(), "pkg/provider/errors.go"),
	}
}

// Cost says how long servers existed: from their POST to their DELETE or, without one, to now.
func (w *Witness) Cost(now time.Time, volumeGB int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all time.Duration
	for _, s := range w.servers {
		end := s.deleted
		if end.IsZero() {
			end = now
		}
		all += end.Sub(s.posted)
	}
	return fmt.Sprintf("%d servers, %.1f server minutes and %.1f GB hours from their POST to their DELETE.",
		len(w.servers), all.Minutes(), all.Hours()*float64(volumeGB))
}

// span is when something happened, after something else: between the last time that it was
// looked for in vain and the first time that it was seen.
type span struct{ from, to time.Duration }

func between(since, last, first time.Time) span {
	if since.IsZero() || first.IsZero() {
		return span{}
	}
	from := time.Duration(0)
	if last.After(since) {
		from = last.Sub(since)
	}
	return span{from, max(first.Sub(since), from)}
}

func appeared(by func(*server) sight) func(*server) span {
	return func(s *server) span { return between(s.posted, by(s).missed, by(s).first) }
}

func gone(s *server, by sight) span {
	if by.absent.Before(s.deleted) {
		return span{}
	}
	return between(s.deleted, by.last, by.absent)
}

// spans shows those of all servers, the shortest first.
func (w *Witness) spans(of func(*server) span) string {
	var all []span
	for _, s := range w.servers {
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

func (w *Witness) tally(of func(*server) string) string {
	seen := counts{}
	for _, s := range w.servers {
		if text := of(s); text != "" {
			seen[text]++
		}
	}
	return seen.String()
}

func (w *Witness) afterwards() string {
	all := counts{}
	for _, s := range w.servers {
		for status, count := range s.afterwards {
			all[status] += count
		}
	}
	return all.String()
}

func (w *Witness) strangers() string {
	f := &w.facts
	if len(f.strangers) == 0 {
		return ""
	}
	return fmt.Sprintf("of %d servers that are not the run's, %d show metadata, %d a key kubernetes.io-cluster-…",
		len(f.strangers), len(f.withMetadata), len(f.fromOpenStack))
}
