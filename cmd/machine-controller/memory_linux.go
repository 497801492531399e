// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram unmaps the pages of the program's file that the process has not
// written to; what it needs of them comes back from the page cache.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	areas, err := parseSmaps(smaps)
	if err != nil {
		return err
	}
	for _, a := range areas {
		if a.file != program || a.writable || a.written {
			continue
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, a.start, a.size, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise of %d bytes at %#x: %w", a.size, a.start, errno)
		}
	}
	return nil
}

// area is a mapping of the process.
type area struct {
	start, size uintptr
	writable    bool
	// written: it has pages that differ from the file's, as those have that are
	// relocated at the start or that a debugger set breakpoints in.
	written bool
	// file is "" or in brackets where it is no file.
	file string
}

// parseSmaps reads what proc_pid_smaps(5) describes: of each mapping a line like
//
//	00400000-02a41000 r-xp 00000000 fe:00 1234   /machine-controller
//
// and then lines like "Anonymous:   0 kB".
func parseSmaps(smaps []byte) ([]area, error) {
	var areas []area
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name == "Anonymous:" && len(areas) > 0 {
			areas[len(areas)-1].written = strings.TrimSpace(value) != "0 kB"
		}
		if strings.HasSuffix(name, ":") {
			continue
		}
		first, end, _ := strings.Cut(name, "-")
		from, fromErr := strconv.ParseUint(first, 16, 64)
		to, toErr := strconv.ParseUint(end, 16, 64)
		fields := strings.SplitN(value, " ", 5)
		if fromErr != nil || toErr != nil || to < from || len(fields) < 4 {
			return nil, fmt.Errorf("/proc/self/smaps has the line %q", lines.Text())
		}
		a := area{start: uintptr(from), size: uintptr(to - from), writable: strings.Contains(fields[0], "w"), written: true}
		if len(fields) == 5 {
			a.file = strings.TrimLeft(fields[4], " ")
		}
		areas = append(areas, a)
	}
	return areas, lines.Err()
}
