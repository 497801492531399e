// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// trace is what happened, for people and for the comparison of two runs.
type trace struct {
	mu    sync.Mutex
	lines []line
	// names of what has an ID, which are random: of servers, made is how many have one, by the
	// order in which they were made.
	names map[string]string
	made  int
}

type line struct {
	at   time.Duration
	text string
}

func newTrace() *trace { return &trace{names: map[string]string{}} }

func (t *trace) add(at time.Duration, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{at, text})
}

// named gives a new server its name in the trace.
func (t *trace) named(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.names[id]; !known {
		t.made++
		t.names[id] = fmt.Sprintf("server-%d", t.made)
	}
}

// called gives something else its name in the trace.
func (t *trace) called(id, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[id] = name
}

// name of a server; "" if it is not known.
func (t *trace) name(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[id]
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// text is the whole trace. What happened at the same moment is sorted: its order
// is the scheduler's.
func (t *trace) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	slices.SortStableFunc(t.lines, func(a, b line) int { return int(a.at - b.at) })
	for _, l := range t.lines {
		text := uuids.ReplaceAllStringFunc(l.text, func(id string) string {
			if name, ok := t.names[id]; ok {
				return name
			}
			return "(id)"
		})
		lines = append(lines, fmt.Sprintf("%13.6f %s", l.at.Seconds(), text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
