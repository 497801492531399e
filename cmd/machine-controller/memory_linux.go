// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// trimProgram drops the pages of the program's file from the resident set, if pages
// of files have more than so many bytes there. It leaves mappings alone that the
// process has written to; what it needs of the others comes back from the page cache.
func trimProgram(above int) error {
	resident, err := residentFiles()
	if err != nil || resident <= above {
		return err
	}
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
	var errs []error
	for _, a := range areas {
		if a.file != program || !a.clean() {
			continue
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, a.start, a.size, syscall.MADV_DONTNEED); errno != 0 {
			errs = append(errs, fmt.Errorf("madvise of %d bytes at %#x: %w", a.size, a.start, errno))
		}
	}
	return errors.Join(errs...)
}

// residentFiles returns how many bytes of files are resident: the third field of
// proc_pid_statm(5).
func residentFiles() (int, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 3 {
		return 0, fmt.Errorf("/proc/self/statm is %q", statm)
	}
	pages, err := strconv.Atoi(fields[2])
	if err != nil {
		return 0, fmt.Errorf("/proc/self/statm is %q", statm)
	}
	return pages * os.Getpagesize(), nil
}

// area is a mapping of the process.
type area struct {
	start, size uintptr
	writable    bool
	// anonymous and swap are the amounts of pages that differ from the file's, as
	// those do that are relocated at the start or in which a debugger set
	// breakpoints; "" if that is not told.
	anonymous, swap string
	// file is "" or in brackets where it is no file.
	file string
}

// clean says that all pages are the file's.
func (a area) clean() bool { return !a.writable && a.anonymous == "0 kB" && a.swap == "0 kB" }

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
		if !strings.HasSuffix(name, ":") {
			a, err := parseArea(name, value)
			if err != nil {
				return nil, fmt.Errorf("/proc/self/smaps has the line %q: %w", lines.Text(), err)
			}
			areas = append(areas, a)
			continue
		}
		if len(areas) == 0 {
			return nil, fmt.Errorf("/proc/self/smaps begins with %q", lines.Text())
		}
		switch last, value := &areas[len(areas)-1], strings.TrimSpace(value); name {
		case "Anonymous:":
			last.anonymous = value
		case "Swap:":
			last.swap = value
		}
	}
	return areas, lines.Err()
}

// parseArea reads addresses such as "00400000-02a41000", and what follows them.
func parseArea(addresses, rest string) (area, error) {
	first, end, _ := strings.Cut(addresses, "-")
	from, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return area{}, err
	}
	to, err := strconv.ParseUint(end, 16, 64)
	if err != nil {
		return area{}, err
	}
	fields := strings.SplitN(rest, " ", 5)
	if to < from || len(fields) < 4 {
		return area{}, fmt.Errorf("a mapping with %d fields, from %#x to %#x", len(fields), from, to)
	}
	a := area{start: uintptr(from), size: uintptr(to - from), writable: strings.Contains(fields[0], "w")}
	if len(fields) == 5 {
		a.file = strings.TrimLeft(fields[4], " ")
	}
	return a, nil
}
