// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
)

// Silence is the row of the runbook's table for a Machine about which the manager reports nothing.
const Silence = "nothing at all, phase empty"

// Row is a row of the table of reasons in kubernetes/runbooks.md.
type Row struct{ Cause, Remedy string }

// RowOf returns the runbook's row for a reason of the driver's, or for Silence, as plain text. Texts of the manager
// itself, and of driver versions without reasons, have no row: both fields are "".
func RowOf(reason string) Row { return rows()[reason] }

// pageLink matches a link of the page, relative to its folder.
var pageLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// plainLink returns a link as text: the page's path from the root of the repository in brackets.
func plainLink(link string) string {
	parts := pageLink.FindStringSubmatch(link)
	to := parts[2]
	if strings.HasPrefix(to, "#") {
		to = "runbooks.md" + to
	}
	return parts[1] + " (" + path.Join("kubernetes", to) + ")"
}

var rows = sync.OnceValue(func() map[string]Row {
	_, table, _ := strings.Cut(kubernetes.Runbooks, "| Reason | Code | Cause | Remedy |\n|---|---|---|---|\n")
	all := map[string]Row{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(pageLink.ReplaceAllStringFunc(line, plainLink), "`", ""), "|")
		if len(cells) != 6 {
			break
		}
		all[strings.TrimSpace(cells[1])] = Row{strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])}
	}
	return all
})
