// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func booting(name string) row {
	return row{machine: name, class: "small", phase: "Pending", server: "CREATING", node: none, age: 2300 * time.Millisecond}
}

func running(name string) row {
	return row{machine: name, class: "small", phase: "Running", server: "ACTIVE", node: ready, age: 75 * time.Second}
}

func testView(width, height int, terminal bool) (*view, *bytes.Buffer) {
	var out bytes.Buffer
	return &view{out: &out, start: time.Now(), size: func() (int, int, bool) { return width, height, terminal }}, &out
}

func TestViewRedrawsOnATerminal(t *testing.T) {
	v, out := testView(80, 24, true)
	v.show([]row{booting("worker-a")})
	v.show([]row{running("worker-a"), running("worker-b")})
	v.say("a line that stays")
	v.close()
	v.say("the end")
	const first = "\nMACHINE   CLASS  PHASE    SERVER    NODE  AGE\nworker-a  small  Pending  CREATING  -     2s\n"
	const second = "\nMACHINE   CLASS  PHASE    SERVER  NODE   AGE\nworker-a  small  Running  ACTIVE  Ready  1m15s\nworker-b  small  Running  ACTIVE  Ready  1m15s\n"
	want := first + "\x1b[3A\r\x1b[J" + second + "\x1b[4A\r\x1b[J" + "a line that stays\n" + second + "the end\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestViewTellsChangesElsewhere(t *testing.T) {
	v, out := testView(0, 0, false)
	v.show([]row{booting("worker-a")})
	v.show([]row{booting("worker-a")})
	v.say("a line that stays")
	v.show(nil)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Contains(out.String(), "\x1b") {
		t.Fatalf("got:\n%s", out)
	}
	for i, want := range []string{"server CREATING", "a line that stays", "gone"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want it to say %q", i, lines[i], want)
		}
	}
}
