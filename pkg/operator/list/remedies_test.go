// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// link of Markdown, relative to kubernetes/.
var link = regexp.MustCompile(`\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)`)

// documentedRemedies returns the rows of the table of kubernetes/runbooks.md as plain text: reason,
// code, cause, remedy.
func documentedRemedies(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "kubernetes", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| Reason | Code | Cause | Remedy |\n|---|---|---|---|\n")
	var rows [][]string
	for line := range strings.Lines(table) {
		line = strings.ReplaceAll(link.ReplaceAllString(strings.TrimSpace(line), "$1 ($2)"), "`", "")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			break
		}
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

func TestRemediesAreThoseOfTheDocument(t *testing.T) {
	var got [][]string
	for _, remedy := range remedies {
		reason, code := "nothing at all, phase empty", ""
		if remedy.Reason != "" {
			reason, code = string(remedy.Reason), remedy.Reason.Code().String()
		}
		got = append(got, []string{reason, code, remedy.Cause, remedy.Remedy})
	}
	if diff := cmp.Diff(documentedRemedies(t), got); diff != "" {
		t.Errorf("remedies differ from kubernetes/runbooks.md (-document +code):\n%s", diff)
	}
}

// A reason without a row leaves a user without help; a row without a reason helps nobody.
func TestEachReasonHasOneRemedy(t *testing.T) {
	var got []provider.Reason
	for _, remedy := range remedies[1:] {
		got = append(got, remedy.Reason)
	}
	slices.Sort(got)
	if diff := cmp.Diff(provider.Reasons(), got); diff != "" {
		t.Errorf("remedies are not about each reason of the driver once (-reasons +remedies):\n%s", diff)
	}
}

func TestRemedyFor(t *testing.T) {
	const noCapacity, none = "no capacity for this machine type and zone", ""
	for name, row := range map[string]struct{ text, cause string }{
		"a text of the driver":                            {"NoCapacity: There are not enough hosts available: creating a server: status 500", noCapacity},
		"a text without a reason, as of an older version": {"There are not enough hosts available: creating a server", none},
		"a text of the manager itself":                    {"Failed to list machine objects", none},
		"a reason in the middle":                          {"creating a server: NoCapacity: no hosts", none},
		"nothing":                                         {"", none},
	} {
		t.Run(name, func(t *testing.T) {
			cause := ""
			if found := remedyFor(row.text); found != nil {
				cause = found.Cause
			}
			if cause != row.cause {
				t.Errorf("got %q, want %q", cause, row.cause)
			}
		})
	}
}
