// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of CPU times in /proc; Linux never shows another.
const ticksPerSecond = 100

// readUsage reads what a process has used, from /proc.
func readUsage(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	return parseUsage(string(stat), status)
}

// readBusy reads the CPU time that the whole computer has used since it started.
func readBusy() (seconds, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(stat))
}

func parseBusy(stat string) (seconds, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	busy := 0.0
	for i, field := range fields[1:8] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, err
		}
		// The fourth and fifth are the time of idling and of waiting for disks.
		if i != 3 && i != 4 {
			busy += ticks
		}
	}
	return seconds(busy / ticksPerSecond), nil
}

func parseUsage(stat string, status []byte) (usage, error) {
	// The second field is the program's name in parentheses, and may have blanks;
	// user and system time are the 14th and 15th.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("/proc/…/stat is %q", stat)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return usage{}, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	if err != nil {
		return usage{}, err
	}
	u := usage{cpu: seconds((user + system) / ticksPerSecond)}
	for line := range bytes.Lines(status) {
		words := strings.Fields(string(line))
		if len(words) != 3 {
			continue
		}
		kib, _ := strconv.ParseFloat(words[1], 64)
		switch words[0] {
		case "VmRSS:":
			u.memory = mebibytes(kib / 1024)
		case "RssAnon:":
			u.anonymous = mebibytes(kib / 1024)
		case "VmHWM:":
			u.peak = mebibytes(kib / 1024)
		}
	}
	return u, nil
}
