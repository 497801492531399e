// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"regexp"
	"strings"
	"sync"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/kubernetes"
)

// remedy is a row of the table of kubernetes/runbooks.md, "When a Machine does not come up".
type remedy struct{ cause, remedy string }

// silent is the row about a Machine of which the manager says nothing.
const silent = "nothing at all, phase empty"

// pageLink is one of the page's links, which are relative to its folder.
var pageLink = regexp.MustCompile(`\[([^\]]*)\]\(\.\./([^)#]*)[^)]*\)`)

// remedies are the rows of the table as plain text, by the driver's reason.
var remedies = sync.OnceValue(func() map[string]remedy {
	_, table, _ := strings.Cut(kubernetes.Runbooks, "| Reason | Code | Cause | Remedy |\n|---|---|---|---|\n")
	rows := map[string]remedy{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(pageLink.ReplaceAllString(line, "$1 ($2)"), "`", ""), "|")
		if len(cells) != 6 {
			break
		}
		rows[strings.TrimSpace(cells[1])] = remedy{strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])}
	}
	return rows
})
