// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asDemo makes the test binary take the tour.
const asDemo = "HACK_DEV_TEST_DEMO"

// TestReaderThatHasGone is make demo | head.
func TestReaderThatHasGone(t *testing.T) {
	if os.Getenv(asDemo) != "" {
		os.Exit(run([]string{"demo"}, os.Stdout, os.Stderr))
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), asDemo+"=true", "TMPDIR="+tmp)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit status 1", err)
	}
	if !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("it says %q", &stderr)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
