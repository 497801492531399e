// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReleaseProgram(t *testing.T) {
	before := residentFilePages(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := residentFilePages(t); after > before/2 {
		t.Errorf("%d KiB of files are resident, %d before", after, before)
	}
}

// residentFilePages is in KiB.
func residentFilePages(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(string(status), "\nRssFile:")
	value, _, _ = strings.Cut(value, " kB")
	kib, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		t.Fatalf("RssFile: %v", err)
	}
	return kib
}

func TestParseSmaps(t *testing.T) {
	got, err := parseSmaps([]byte(`00400000-00402000 r-xp 00000000 fe:00 1234                               /a program
Size:                  8 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me 
00402000-00403000 r--p 00002000 fe:00 1234                               /a program
Anonymous:             4 kB
00403000-00404000 rw-p 00003000 fe:00 1234                               /a program
Anonymous:             0 kB
c000000000-c000001000 rw-p 00000000 00:00 0 
Anonymous:             4 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []area{
		{start: 0x400000, size: 0x2000, file: "/a program"},
		{start: 0x402000, size: 0x1000, file: "/a program", written: true},
		{start: 0x403000, size: 0x1000, file: "/a program", writable: true},
		{start: 0xc000000000, size: 0x1000, writable: true, written: true},
		{start: 0xffffffffff600000, size: 0x1000, file: "[vsyscall]", written: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(area{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"nonsense", "2-1 r-xp 0 0:0 0", "1-2 r-xp", "x-2 r-xp 0 0:0 0", "1-y r-xp 0 0:0 0"} {
		if got, err := parseSmaps([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
