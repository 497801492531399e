// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for name, row := range map[string]struct {
		inUse uint64
		want  int
	}{
		"before the first collection": {0, 100},
		"little":                      {10 << 20, 100},
		"all that garbage may be":     {garbage, 100},
		"some":                        {2 * garbage, 50},
		"much":                        {4 * garbage, 25},
		"very much":                   {800 << 20, 25},
	} {
		if got := gcPercent(row.inUse); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

func TestGOGCWins(t *testing.T) {
	const goes = 73
	before := debug.SetGCPercent(goes)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for gogc, want := range map[string]int{"off": goes, "": 50} {
		t.Setenv("GOGC", gogc)
		debug.SetGCPercent(goes)
		setGCPercent(2 * garbage)
		if got := debug.SetGCPercent(goes); got != want {
			t.Errorf("with GOGC=%q it is %d, want %d", gogc, got, want)
		}
	}
}

func TestAProcessBecomesIdleOnceAfterEachWork(t *testing.T) {
	const busy, little = idleAllocs, idleAllocs - 1
	var idle idleness
	var allocated uint64
	step := func(seconds int, bytes uint64) (begins []int) {
		for s := range seconds {
			allocated += bytes
			if idle.begins(allocated) {
				begins = append(begins, s+1)
			}
		}
		return begins
	}
	for _, row := range []struct {
		name    string
		seconds int
		bytes   uint64
		want    int // the second in which it becomes idle, 0 for never
	}{
		{"the start", 3, busy, 0},
		{"a short pause", idleAfter - 1, little, 0},
		{"work", 1, busy, 0},
		{"after it", 100 * idleAfter, little, idleAfter},
		{"work again", 30, busy, 0},
		{"after that", 100 * idleAfter, 0, idleAfter},
	} {
		got := step(row.seconds, row.bytes)
		if row.want == 0 && len(got) > 0 || row.want > 0 && (len(got) != 1 || got[0] != row.want) {
			t.Errorf("%s: becomes idle in the seconds %v, want %d", row.name, got, row.want)
		}
	}
}

func TestUse(t *testing.T) {
	held := make([]byte, 64<<20)
	runtime.GC()
	before := readUse()
	if before.live < uint64(len(held)) || before.stacks == 0 {
		t.Errorf("with %d bytes held %d are live and %d stacks", len(held), before.live, before.stacks)
	}
	runtime.KeepAlive(held)
	runtime.GC()
	after := readUse()
	if after.live > before.live/2 || after.allocated < before.allocated {
		t.Errorf("%+v is in use, with %d bytes more it was %+v", after, len(held), before)
	}
}
