// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// refusing is the number of refusals without a source of what the mock cannot carry out.
const refusing = 3

// The mock refuses only what STACKIT is known to refuse. Each 4xx has a comment that
// names its source: above the statement, or on the helper that makes this one refusal. A
// refusal without a source goes through Cloud.unconfirmed, directly or in a function that
// passes it on. The mock's own pages, admin*.go and console_source.go, do not exist on STACKIT.
func TestEveryRefusalHasASource(t *testing.T) {
	none := 0
	for _, r := range findRefusals(t) {
		switch {
		case r.unconfirmed:
		case r.source == "":
			t.Errorf("%s: a refusal without a source (\"// Source: …\"), and not through unconfirmed", r.position)
		case strings.HasPrefix(r.source, "none;"):
			none++
		}
	}
	if none != refusing {
		t.Errorf("%d refusals have \"Source: none\", want %d: these are for what cannot be carried out at all", none, refusing)
	}
}

var documented = regexp.MustCompile(`(\d{3}) of (\w+)(?: and ([A-Z]\w+))?`)

// A status that a source names is in the API document, for that operation.
func TestSourcesAreInTheDocument(t *testing.T) {
	operations, checked := declaredOperations(t), 0
	for _, r := range findRefusals(t) {
		for _, found := range documented.FindAllStringSubmatch(strings.ReplaceAll(r.source, "\n", " "), -1) {
			for _, operation := range slices.DeleteFunc(found[2:], func(name string) bool { return name == "" }) {
				checked++
				if _, ok := operations[operation].Responses[found[1]]; !ok {
					t.Errorf("%s: the document has no %s of %s", r.position, found[1], operation)
				}
			}
		}
	}
	if checked < 7 {
		t.Errorf("only %d looked up", checked)
	}
}

const refusalsBegin = "<!-- unconfirmed refusals: go test ./test/iaasmock -run Readme -update -->\n"

func TestReadmeListsTheUnconfirmedRefusals(t *testing.T) {
	operations := readCode(t, ".").operations()
	rows := map[string][]string{}
	for _, r := range findRefusals(t) {
		if r.unconfirmed {
			row := fmt.Sprintf("| %d | %s |", r.status, r.message)
			rows[row] = append(rows[row], operations[r.function]...)
		}
	}
	table := "| status | message | operations |\n|---|---|---|\n"
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		names := slices.Compact(slices.Sorted(slices.Values(rows[row])))
		table += fmt.Sprintf("%s `%s` |\n", row, strings.Join(names, "`, `"))
	}
	checkReadme(t, refusalsBegin, table)
}
