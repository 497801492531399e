// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// row is one line of the report: a question, and what the run has seen.
type row struct{ question, seen string }

// report collects the rows of a run. It is safe for concurrent use.
type report struct {
	mu   sync.Mutex
	rows []row
}

// note adds a row and prints it.
func (r *run) note(question, format string, args ...any) {
	seen := redact(oneLine(fmt.Sprintf(format, args...)))
	r.say("%s: %s", question, seen)
	r.report.mu.Lock()
	defer r.report.mu.Unlock()
	r.report.rows = append(r.report.rows, row{question, seen})
}

// write writes the report as Markdown. head names the run and is written as it is, the rest redacted:
// a commit looks like an ID.
func (r *report) write(out io.Writer, head, result string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := redact(oneLine(result)) + "\n\n| Question | Seen |\n|---|---|\n"
	for _, row := range r.rows {
		text += fmt.Sprintf("| %s | %s |\n", row.question, strings.ReplaceAll(row.seen, "|", `\|`))
	}
	_, err := fmt.Fprintf(out, "%s\n\n%s", head, text)
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// private matches what identifies a person, an account or a resource: keys, tokens, email addresses,
// UUIDs, IPv4, MAC and IPv6 addresses.
var private = regexp.MustCompile(`-----BEGIN[^-]*-----[^-]*(-----END[^-]*-----)?` +
	`|eyJ[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]*)*` +
	`|[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+` +
	`|(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})` +
	`|\b([0-9]{1,3}\.){3}[0-9]{1,3}\b` +
	`|(?i:\b([0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b)` +
	`|(?i:\b([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b|[0-9a-f:]*::[0-9a-f:]*)`)

// redact hides everything private.
func redact(text string) string { return private.ReplaceAllString(text, "(hidden)") }
