// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	none  = "-"
	ready = "Ready"
)

// row is one line of the table.
type row struct {
	machine, class, phase, server, node string
	age                                 time.Duration
	// message is what the manager last said about a machine that does not run.
	message string
	// failed says that message is about a failure.
	failed bool
}

// news is the part of a row whose change is worth a line of its own: no age,
// and of the messages only failures, since the manager comments every step.
func (r row) news() string {
	text := fmt.Sprintf("%-28s %-13s server %-9s node %s", r.machine, r.phase, r.server, r.node)
	if r.failed {
		text += "  " + r.message
	}
	return text
}

// table renders rows as lines of at most width characters, and of at most
// height lines. Zero means any.
func table(rows []row, width, height int) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "MACHINE\tCLASS\tPHASE\tSERVER\tNODE\tAGE\t")
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.machine, r.class, r.phase, r.server, r.node, r.age.Truncate(time.Second), r.message)
	}
	_ = w.Flush()
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if hidden := len(lines) - height; height > 1 && hidden > 0 {
		lines = append(lines[:height-1], fmt.Sprintf("… and %d more", hidden+1))
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(cut(line, width), " ")
	}
	return lines
}

// cut shortens a line to width characters; zero means any.
func cut(line string, width int) string {
	runes := []rune(line)
	if width == 0 || len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// changes compares rows with those shown before and returns a line for each
// that differs, came or went.
func changes(before, now []row) []string {
	known := map[string]row{}
	for _, r := range before {
		known[r.machine] = r
	}
	var lines []string
	for _, r := range now {
		old, found := known[r.machine]
		delete(known, r.machine)
		if !found || old.news() != r.news() {
			lines = append(lines, r.news())
		}
	}
	for _, r := range before {
		if _, gone := known[r.machine]; gone {
			lines = append(lines, fmt.Sprintf("%-28s gone", r.machine))
		}
	}
	return lines
}
