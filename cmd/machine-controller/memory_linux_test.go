// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrimProgram(t *testing.T) {
	touchProgram(t)
	before := mustResidentFiles(t)
	if err := trimProgram(math.MaxInt); err != nil {
		t.Fatal(err)
	}
	if kept := mustResidentFiles(t); kept < before/2 {
		t.Errorf("%d bytes of files are resident, %d before: too few to be worth while", kept, before)
	}
	if err := trimProgram(0); err != nil {
		t.Fatal(err)
	}
	if after := mustResidentFiles(t); after > before/2 {
		t.Errorf("%d bytes of files are resident, %d before", after, before)
	}
}

func TestAnIdleProcessGivesBack(t *testing.T) {
	for idle, want := range map[int]bool{0: false, 1: false, idleAfter - 1: false, idleAfter: true, idleAfter + 1: false, 7 * idleAfter: true} {
		touchProgram(t)
		before := mustResidentFiles(t)
		if err := giveBack(idle); err != nil {
			t.Fatal(err)
		}
		if trimmed := mustResidentFiles(t) < before/2; trimmed != want {
			t.Errorf("after %d s the program's pages are dropped: %t", idle, trimmed)
		}
	}
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = 1
	}
	released := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := released()
	runtime.KeepAlive(held)
	if err := giveBack(idleAfter); err != nil {
		t.Fatal(err)
	}
	if got := released(); got < before+uint64(len(held)) {
		t.Errorf("%d bytes are released, %d before, want %d more", got, before, len(held))
	}
}

// touchProgram makes all of the program resident.
func touchProgram(t *testing.T) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	areas, err := parseSmaps(smaps)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	for _, a := range areas {
		if a.file != program {
			continue
		}
		if _, err := memory.ReadAt(make([]byte, a.size), int64(a.start)); err != nil {
			t.Fatal(err)
		}
	}
}

func mustResidentFiles(t *testing.T) int {
	t.Helper()
	resident, err := residentFiles()
	if err != nil {
		t.Fatal(err)
	}
	return resident
}

func TestParseSmaps(t *testing.T) {
	got, err := parseSmaps([]byte(`00400000-00402000 r-xp 00000000 fe:00 1234                               /a program
Size:                  8 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me 
00402000-00403000 r--p 00002000 fe:00 1234                               /a program
Anonymous:             4 kB
Swap:                  0 kB
00403000-00404000 rw-p 00003000 fe:00 1234                               /a program
Anonymous:             0 kB
Swap:                  8 kB
c000000000-c000001000 rw-p 00000000 00:00 0 
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []area{
		{start: 0x400000, size: 0x2000, anonymous: "0 kB", swap: "0 kB", file: "/a program"},
		{start: 0x402000, size: 0x1000, anonymous: "4 kB", swap: "0 kB", file: "/a program"},
		{start: 0x403000, size: 0x1000, writable: true, anonymous: "0 kB", swap: "8 kB", file: "/a program"},
		{start: 0xc000000000, size: 0x1000, writable: true},
		{start: 0xffffffffff600000, size: 0x1000, file: "[vsyscall]"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(area{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"nonsense", "2-1 r-xp 0 0:0 0", "1-2 r-xp", "x-2 r-xp 0 0:0 0", "1-y r-xp 0 0:0 0", "Swap: 0 kB"} {
		if got, err := parseSmaps([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestOnlyCleanAreasAreTrimmed(t *testing.T) {
	for name, row := range map[string]struct {
		area area
		want bool
	}{
		"as the file":     {area{anonymous: "0 kB", swap: "0 kB"}, true},
		"writable":        {area{writable: true, anonymous: "0 kB", swap: "0 kB"}, false},
		"relocated":       {area{anonymous: "4 kB", swap: "0 kB"}, false},
		"and swapped out": {area{anonymous: "0 kB", swap: "4 kB"}, false},
		"unknown":         {area{}, false},
		"no swap told":    {area{anonymous: "0 kB"}, false},
	} {
		if got := row.area.clean(); got != row.want {
			t.Errorf("%s: clean is %t", name, got)
		}
	}
}
