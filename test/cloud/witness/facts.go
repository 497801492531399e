// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
)

// counts are texts with how often each was seen.
type counts map[string]int

func (c counts) String() string {
	var parts []string
	for _, text := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s (%d×)", text, c[text]))
	}
	return strings.Join(parts, "; ")
}

func keys(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }

// facts are measured over all exchanges.
type facts struct {
	// calls are the statuses of each operation; failures, the forms of refusals.
	calls, failures counts
	// headers are the names of headers, and the values of those about limits.
	headers, retryAfter, emptyLists      counts
	statuses, errorMessages, addedLabels counts
	quotaTexts                           counts
	odd404, otherServers, ignored        int
	// seconds counts the calls that began in a second.
	seconds map[int64]int
	latency []time.Duration
	// hiccup is the longest time for which lists did not show a server that they had shown.
	hiccup time.Duration
	// strangers are servers of others, by ID; withMetadata are those that show metadata, and
	// fromOpenStack whose metadata or labels name a cluster as Gardener's OpenStack provider does.
	strangers, withMetadata, fromOpenStack map[string]bool
	// windows counts servers in lists that show a maintenance window; listed, all.
	windows, listed int
}

func newFacts() facts {
	return facts{
		calls: counts{}, failures: counts{}, headers: counts{}, retryAfter: counts{}, emptyLists: counts{},
		statuses: counts{}, errorMessages: counts{}, addedLabels: counts{}, quotaTexts: counts{}, seconds: map[int64]int{},
		strangers: map[string]bool{}, withMetadata: map[string]bool{}, fromOpenStack: map[string]bool{},
	}
}

func (f *facts) count(e guard.Exchange) {
	f.seconds[e.Begin.Unix()]++
	f.latency = append(f.latency, e.End.Sub(e.Begin))
	if e.Status == 0 {
		f.calls[e.Kind()+": no answer"]++
		return
	}
	f.calls[fmt.Sprintf("%s: %d", e.Kind(), e.Status)]++
	if e.Status >= 400 {
		f.failures[fmt.Sprintf("%s: %s", e.Kind(), answerForm(e))]++
		if strings.Contains(strings.ToLower(string(e.Body)), "quota") {
			f.quotaTexts[fmt.Sprintf("%s: %d %q", e.Kind(), e.Status, cut(string(e.Body)))]++
		}
	}
	for name := range e.Header {
		switch lower := strings.ToLower(name); {
		case lower == "retry-after":
			f.retryAfter[fmt.Sprintf("%d with %q", e.Status, e.Header.Get(name))]++
		case strings.Contains(lower, "limit"):
			f.headers[fmt.Sprintf("%s: %q", name, e.Header.Get(name))]++
		default:
			f.headers[name]++
		}
	}
}

// cut is the beginning of a text.
func cut(text string) string {
	const most = 160
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// answerForm is the status of an answer, the type of its content and its shape, with the
// text of an error in the API's form.
func answerForm(e guard.Exchange) string {
	kind, _, err := mime.ParseMediaType(e.Header.Get("Content-Type"))
	if err != nil {
		kind = "no content type"
	}
	return fmt.Sprintf("%d, %s, %s", e.Status, kind, shape(e.Body))
}

func shape(body []byte) string {
	if len(body) == 0 {
		return "no body"
	}
	var object map[string]any
	if json.Unmarshal(body, &object) != nil {
		return fmt.Sprintf("no JSON object, %d bytes", len(body))
	}
	text, _ := object["msg"].(string)
	return fmt.Sprintf("{%s}, msg %q", strings.Join(slices.Sorted(maps.Keys(object)), ","), cut(text))
}

// list notes the form of an empty list, and maintenance windows.
func (f *facts) list(e guard.Exchange, servers []api.Server) {
	f.listed += len(servers)
	for _, server := range servers {
		if server.MaintenanceWindow != nil {
			f.windows++
		}
	}
	if len(servers) > 0 {
		return
	}
	var body struct{ Items json.RawMessage }
	_ = json.Unmarshal(e.Body, &body) // decoded before
	f.emptyLists[`"items": `+string(body.Items)]++
}

// stranger notes what a server of somebody else says about metadata, and nothing else of it.
func (f *facts) stranger(seen api.Server) {
	f.strangers[seen.ID] = true
	if len(seen.Metadata) > 0 {
		f.withMetadata[seen.ID] = true
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(seen.Metadata)), slices.Collect(maps.Keys(seen.Labels))) {
		if strings.HasPrefix(key, "kubernetes.io-cluster-") {
			f.fromOpenStack[seen.ID] = true
		}
	}
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
		return ""
	}
	all := slices.Sorted(slices.Values(f.latency))
	ms := func(at int) time.Duration { return all[at].Round(time.Millisecond) }
	over := 0
	for _, took := range all {
		if took > attempt {
			over++
		}
	}
	return fmt.Sprintf("%d calls: median %s, 99 of 100 within %s, at most %s; %d longer than %s",
		len(all), ms(len(all)/2), ms(len(all)*99/100), ms(len(all)-1), over, attempt)
}

func sentLabels(e guard.Exchange) map[string]string {
	var sent struct{ Labels api.Labels }
	_ = json.Unmarshal(e.Sent, &sent) // what is no JSON has no labels
	return sent.Labels
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
		if !ok || strings.ContainsAny(key, "! ") {
			return nil, false
		}
		labels[key] = value
	}
	return labels, true
}

// matches says that the labels are among those wanted.
func matches(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

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
