// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// children returns the processes whose parent we are, but for the ps that looks.
func children(t *testing.T) []int {
	t.Helper()
	cmd := exec.Command("ps", "-A", "-o", "pid=,ppid=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if _, err := fmt.Sscan(line, &pid, &parent); err != nil {
			t.Fatalf("ps printed %q: %v", line, err)
		}
		if parent == os.Getpid() && pid != cmd.Process.Pid {
			found = append(found, pid)
		}
	}
	return found
}

// commandOf returns the path of the program a process runs.
func commandOf(pid int) string {
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	path, _, _ := strings.Cut(string(out), " ")
	return path
}
