// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// counts are texts with how often each was seen.
type counts map[string]int

// String lists them, the most frequent last-named ties by text.
func (c counts) String() string {
	var parts []string
	for _, text := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s (%d×)", text, c[text]))
	}
	if len(parts) == 0 {
		return "not seen"
	}
	return strings.Join(parts, "; ")
}

// facts are measured over all exchanges.
type facts struct {
	calls, limited int
	// seconds counts the calls that began in a second.
	seconds map[int64]int
	// failures are the forms of refusals by operation.
	failures, retryAfter, emptyLists, deletedAgain, requestIDs counts
	latency                                                    []time.Duration
	// hiccup is the longest time for which lists did not show a server that they had shown.
	hiccup time.Duration
	// strangers are servers of others, by ID; withMetadata are those that show metadata, and
	// fromOpenStack whose metadata names a cluster as Gardener's OpenStack provider does.
	strangers, withMetadata, fromOpenStack map[string]bool
}

func newFacts() facts {
	return facts{
		seconds: map[int64]int{}, failures: counts{}, retryAfter: counts{}, emptyLists: counts{},
		deletedAgain: counts{}, requestIDs: counts{},
		strangers: map[string]bool{}, withMetadata: map[string]bool{}, fromOpenStack: map[string]bool{},
	}
}

func (f *facts) note(where *counts, text string) { (*where)[text]++ }

func (f *facts) count(e guard.Exchange) {
	f.calls++
	f.seconds[e.Begin.Unix()]++
	f.latency = append(f.latency, e.End.Sub(e.Begin))
	if e.Status == 0 {
		f.note(&f.failures, e.Kind()+": no answer")
		return
	}
	f.note(&f.requestIDs, requestIDForm(e.Header.Get("X-Request-Id")))
	if e.Status == 429 {
		f.limited++
	}
	if e.Status >= 400 {
		f.note(&f.failures, e.Kind()+": "+answerForm(e))
	}
	if value := e.Header.Get("Retry-After"); value != "" {
		f.note(&f.retryAfter, fmt.Sprintf("%d with %q", e.Status, value))
	}
}

var requestID = regexp.MustCompile(`^req-[0-9a-f]{32}$`)

func requestIDForm(value string) string {
	switch {
	case value == "":
		return "none"
	case requestID.MatchString(value):
		return "req- and 32 hexadecimal digits"
	}
	return "another form"
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
	if len(text) > 160 {
		text = text[:160] + "…"
	}
	return fmt.Sprintf("{%s}, msg %q", strings.Join(slices.Sorted(maps.Keys(object)), ","), text)
}

// list notes the form of an empty list.
func (f *facts) list(e guard.Exchange, length int) {
	if length > 0 {
		return
	}
	var body map[string]json.RawMessage
	_ = json.Unmarshal(e.Body, &body) // decoded before
	items, ok := body["items"]
	if !ok {
		items = json.RawMessage("missing")
	}
	f.note(&f.emptyLists, `"items": `+string(items))
}

// stranger notes what a server of somebody else says about metadata, and nothing else of it.
func (f *facts) stranger(seen api.Server) {
	f.strangers[seen.ID] = true
	for key := range seen.Metadata {
		f.withMetadata[seen.ID] = true
		if strings.HasPrefix(key, "kubernetes.io-cluster-") {
			f.fromOpenStack[seen.ID] = true
		}
	}
}

func plural(count int, what string) string { return fmt.Sprintf("%d %s", count, what) }
