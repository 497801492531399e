// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
)

// Rows returns what was measured over all exchanges up to now.
func (w *Witness) Rows(now time.Time) []report.Row {
	w.mu.Lock()
	defer w.mu.Unlock()
	row := func(assumption, seen string, where ...string) report.Row {
		return report.Row{Assumption: assumption, Seen: seen, Where: where}
	}
	f := &w.facts
	return []report.Row{
		row("A run costs at most 120 server minutes", w.cost(now), "test/cloud/guard/guard.go"),
		row("A server that was just made is there for GET", w.appearance("GET answered 404", got, missedByGET),
			"pkg/provider/create.go", "pkg/provider/gone.go"),
		row("Lists show a new server within settle, 30 s", w.appearance("list was without it", listed, missedList),
			"pkg/provider/reads.go", "pkg/provider/internal/ledger/ledger.go"),
		row("Lists do not lose a server that exists for longer than 15 s", "longest time without it: "+f.hiccup.Round(100*time.Millisecond).String(), "pkg/provider/gone.go"),
		row("A server boots within the creation timeout, at most 10 min in one call", w.spans("from the POST's answer to ACTIVE", posted, active), "pkg/provider/request.go", "pkg/provider/create.go"),
		row("After a DELETE that was accepted, GET answers 404 at last", w.spans("from DELETE to the first 404", deleted, gone)+"; deleted in the status "+w.tally(func(s *server) string { return s.deletedFrom }), "pkg/provider/gone.go", "pkg/provider/delete.go"),
		row("GET and lists show DELETING until then", fmt.Sprintf("GET of %d, lists of %d of %d deleted servers", w.number(func(s *server) bool { return s.deletingByGET }), w.number(func(s *server) bool { return s.deletingLists }), w.number(func(s *server) bool { return !s.deleted.IsZero() })),
			"pkg/provider/gone.go", "pkg/provider/reads.go"),
		row("DELETE of a deleted server answers 404", f.deletedAgain.String(), "pkg/provider/delete.go"),
		row("An empty list is [] or null", f.emptyLists.String(), "pkg/provider/sdk_client.go"),
		row("Errors are JSON with code and msg; refusals differ by status", f.failures.String(), "pkg/provider/errors.go", "pkg/spi/errors.go"),
		row("Retry-After may come with 429 and 503", f.retryAfter.String(), "pkg/spi/pace.go"),
		row("The API adds labels of its own and keeps ours", "added: "+w.added(), "pkg/provider/ownership.go"),
		row("50 calls a second, 8 reads a second of a session, are not too many", fmt.Sprintf("%d calls, at most %d in a second, %d answered 429", f.calls, f.busiest(), f.limited), "pkg/spi/limits.go", "pkg/spi/spi.go"),
		row("An attempt ends within 30 s", f.latencies(), "pkg/spi/deadline.go"),
		row("Answers have an X-Request-Id", f.requestIDs.String(), "pkg/spi/metrics.go"),
		row("Metadata of servers from OpenStack shows as metadata", fmt.Sprintf("of %d servers that are not the run's, %d show metadata, %d a key kubernetes.io-cluster-…", len(f.strangers), len(f.withMetadata), len(f.fromOpenStack)), "pkg/provider/openstack.go"),
	}
}

// cost says how long servers existed: from their POST to their DELETE or, after an early end,
// to now.
func (w *Witness) cost(now time.Time) string {
	var all time.Duration
	for _, s := range w.servers {
		end := s.deleted
		if end.IsZero() {
			end = now
		}
		all += end.Sub(s.posted)
	}
	return fmt.Sprintf("%d servers, %.1f minutes from their POST to their DELETE or, of %d, to the report",
		len(w.servers), all.Minutes(), w.number(func(s *server) bool { return s.deleted.IsZero() }))
}

// appearance says how long after its POST a server showed. Only servers that were missed before
// say so: of the others, it is known when somebody asked first.
func (w *Witness) appearance(missing string, shown, missed func(*server) time.Time) string {
	all := w.number(func(s *server) bool { return !shown(s).IsZero() || !missed(s).IsZero() })
	late := w.number(func(s *server) bool { return !missed(s).IsZero() })
	switch {
	case all == 0:
		return "not seen"
	case late == 0:
		return fmt.Sprintf("no %s before the first that showed it (%d servers)", missing, all)
	}
	shownLate := func(s *server) time.Time {
		if missed(s).IsZero() {
			return time.Time{}
		}
		return shown(s)
	}
	return fmt.Sprintf("%d of %d servers were missed at first, a %s; %s%s", late, all, missing,
		w.spans("from the POST's answer to the first that showed it", posted, shownLate), w.last("; the last one before was asked for", missed))
}

func posted(s *server) time.Time      { return s.posted }
func got(s *server) time.Time         { return s.got }
func listed(s *server) time.Time      { return s.listed }
func active(s *server) time.Time      { return s.active }
func deleted(s *server) time.Time     { return s.deleted }
func gone(s *server) time.Time        { return s.gone }
func missedByGET(s *server) time.Time { return s.missedByGET }
func missedList(s *server) time.Time  { return s.missedList }

// spans says how long it was between two moments of the servers that had both.
func (w *Witness) spans(what string, from, to func(*server) time.Time) string {
	var all []time.Duration
	for _, s := range w.servers {
		if !from(s).IsZero() && !to(s).IsZero() {
			all = append(all, span(from(s), to(s)))
		}
	}
	if len(all) == 0 {
		return "not seen"
	}
	slices.Sort(all)
	return fmt.Sprintf("%s: %s, median %s, at most %s (%d servers)", what, all[0], all[len(all)/2], all[len(all)-1], len(all))
}

// last says how long after its POST the latest of these moments of a server was.
func (w *Witness) last(what string, moment func(*server) time.Time) string {
	var latest time.Duration
	for _, s := range w.servers {
		if at := moment(s); !at.IsZero() {
			latest = max(latest, span(s.posted, at))
		}
	}
	if latest == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s after it", what, latest)
}

func (w *Witness) number(is func(*server) bool) int {
	number := 0
	for _, s := range w.servers {
		if is(s) {
			number++
		}
	}
	return number
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

func (w *Witness) added() string {
	keys := map[string]bool{}
	for _, s := range w.servers {
		maps.Copy(keys, s.added)
	}
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
}

func (f *facts) busiest() int {
	most := 0
	for _, count := range f.seconds {
		most = max(most, count)
	}
	return most
}

func (f *facts) latencies() string {
	if len(f.latency) == 0 {
		return "not seen"
	}
	all := slices.Sorted(slices.Values(f.latency))
	return fmt.Sprintf("median %s, 99 of 100 within %s, at most %s", all[len(all)/2].Round(time.Millisecond),
		all[len(all)*99/100].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
}
