// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// view prints permanent lines, and below them a table that changes: redrawn on a terminal, printed as lines of
// changes elsewhere.
type view struct {
	out io.Writer
	// size returns the terminal's size, or ok == false without a terminal.
	size  func() (width, height int, ok bool)
	start time.Time

	mu    sync.Mutex
	drawn int // lines of the table on the terminal
	shown []row
}

// newView returns a view that writes to out. If writing fails, it calls failed.
func newView(out *os.File, failed func(error)) *view {
	fd := int(out.Fd())
	return &view{out: reportingWriter{out, failed}, start: time.Now(), size: func() (int, int, bool) {
		if !term.IsTerminal(fd) || os.Getenv("TERM") == "dumb" {
			return 0, 0, false
		}
		width, height, err := term.GetSize(fd)
		return width, height, err == nil && width > 20 && height > 5
	}}
}

// reportingWriter reports write errors.
type reportingWriter struct {
	io.Writer
	failed func(error)
}

func (w reportingWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	if err != nil {
		w.failed(err)
	}
	return n, err
}

// say prints a permanent line.
func (v *view) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	_, _ = fmt.Fprintf(v.out, format+"\n", args...)
	v.draw()
}

// progress prints a permanent line with the time since the start.
func (v *view) progress(line string) {
	v.say("%s %s", v.elapsed(), line)
}

// show replaces the table.
func (v *view) show(rows []row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.shown
	v.shown = rows
	if _, _, terminal := v.size(); terminal {
		v.erase()
		v.draw()
		return
	}
	for _, line := range changes(before, rows) {
		_, _ = fmt.Fprintf(v.out, "%s %s\n", v.elapsed(), line)
	}
}

// close leaves the table as it is.
func (v *view) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drawn, v.shown = 0, nil
}

// erase moves to the table's first line and clears from there.
func (v *view) erase() {
	if v.drawn > 0 {
		_, _ = fmt.Fprintf(v.out, "\x1b[%dA\r\x1b[J", v.drawn)
	}
	v.drawn = 0
}

func (v *view) draw() {
	width, height, terminal := v.size()
	if !terminal || v.shown == nil {
		return
	}
	lines := table(v.shown, width, height-2)
	_, _ = fmt.Fprintln(v.out, "\n"+strings.Join(lines, "\n"))
	v.drawn = len(lines) + 1
}

func (v *view) elapsed() string {
	return fmt.Sprintf("[%5.1fs]", time.Since(v.start).Seconds())
}

const (
	none  = "-"
	ready = "Ready"
)

// row is one line of the table.
type row struct {
	machine, class, phase, server, node string
	age                                 time.Duration
	// message is the manager's last description of a machine that does not run.
	message string
	// failed means that message describes a failure.
	failed bool
}

// news returns the part of a row whose changes are printed: no age, and messages only of failures, since the manager
// describes every step.
func (r row) news() string {
	text := fmt.Sprintf("%-28s %-13s server %-9s node %s", r.machine, r.phase, r.server, r.node)
	if r.failed {
		text += "  " + r.message
	}
	return text
}

// table renders rows as at most height lines of at most width characters.
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
	if hidden := len(lines) - height; hidden > 0 {
		lines = append(lines[:height-1], fmt.Sprintf("… and %d more", hidden+1))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width-1]) + "…"
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// changes returns a line for each row that is new, different or gone.
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
