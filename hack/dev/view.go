// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// view shows text that stays, and below it a table that changes: drawn over and
// over on a terminal, told line by line elsewhere.
type view struct {
	out io.Writer
	// size returns the terminal's, or ok == false where there is none.
	size  func() (width, height int, ok bool)
	start time.Time

	mu    sync.Mutex
	drawn int // lines of the table on the terminal
	shown []row
}

// newView returns a view that writes to out. When that fails it calls failed.
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

// reportingWriter reports what cannot be written.
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

// say prints a line that stays.
func (v *view) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	_, _ = fmt.Fprintf(v.out, format+"\n", args...)
	v.draw()
}

// progress prints a line that stays, with the time since the start.
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
