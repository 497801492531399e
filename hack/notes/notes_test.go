// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package notes_test runs `make release-notes` in a clone that has versions.
package notes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

const root = "../.."

// TestNotesSayWhatIsNew: since the version before, neither merges nor what commits say below
// their first line.
func TestNotesSayWhatIsNew(t *testing.T) {
	program, err := filepath.Abs(filepath.Join(root, "bin/notes/node_modules/.bin/git-cliff"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("git-cliff is not installed: the notes are not tested here (`make release-notes` installs it, as .ci/run does)")
	}
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, ".", "git", "clone", "--quiet", "--no-tags", root, clone)
	commit := func(message string) {
		run(t, clone, "git", "-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "--allow-empty", "--message", message)
	}
	run(t, clone, "git", "tag", "v0.1.0")
	commit("The first")
	run(t, clone, "git", "tag", "not-a-version")
	commit("Merge branch 'side'")
	commit("The second\n\nIts reasons.")
	run(t, clone, "git", "tag", "v0.2.0-rc.1")
	commit("The third")
	run(t, clone, "git", "tag", "v0.2.0-rc.2")
	run(t, clone, "git", "tag", "v0.2.0")
	for version, want := range map[string]string{
		"v0.2.0":      "- The third (commit)\n- The second (commit)\n- The first (commit)\n",
		"v0.2.0-rc.2": "- The third (commit)\n",
	} {
		run(t, clone, "make", "release-notes", "GIT_CLIFF="+program, "VERSION="+version)
		notes, err := os.ReadFile(filepath.Join(clone, "bin", "release-notes.md"))
		if err != nil {
			t.Fatal(err)
		}
		if got := regexp.MustCompile(`[0-9a-f]{12}`).ReplaceAllString(string(notes), "commit"); got != want {
			t.Errorf("the notes of %s are\n%s, want\n%s", version, got, want)
		}
	}
}

func run(t *testing.T, folder, program string, arguments ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Dir = folder
	// `make test` hands its own flags down; they are not meant for this run.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", program, arguments, err, output)
	}
}
