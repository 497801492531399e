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
