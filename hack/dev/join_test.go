// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSecondEnvironment: make start joins the environment that was started last, and the first one again after the
// second has ended, however that was.
func TestSecondEnvironment(t *testing.T) {
	dead := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		pid int
		end func(second joinFile)
	}{
		"interrupted": {os.Getpid(), joinFile.remove},
		"killed":      {dead.ProcessState.Pid(), func(joinFile) {}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dev.sh")
			first := joinFile{path, joinScript(os.Getpid(), noSidecar, []string{"--first"}, nil)}
			second := joinFile{path, joinScript(row.pid, ownSidecar, []string{"--second"}, nil)}
			for _, file := range []joinFile{first, second} {
				if err := file.write(); err != nil {
					t.Fatal(err)
				}
			}
			if isAlive(row.pid) {
				first.keep()
				wantFile(t, second)
			}
			row.end(second)
			first.keep()
			wantFile(t, first)
			first.remove()
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("left over: %v", err)
			}
		})
	}
}

func wantFile(t *testing.T, want joinFile) {
	t.Helper()
	if now, err := os.ReadFile(want.path); err != nil || string(now) != string(want.script) {
		t.Errorf("the file has %q, %v, want %q", now, err, want.script)
	}
}

func TestPathsInTheWelcome(t *testing.T) {
	for path, want := range map[string]string{
		"/tmp/localenv-1/kubeconfig": "/tmp/localenv-1/kubeconfig",
		"/tmp/my files/kubeconfig":   "'/tmp/my files/kubeconfig'",
		"/tmp/$HOME/it's":            `'/tmp/$HOME/it'\''s'`,
	} {
		if got := quoteIfNeeded(path); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}
