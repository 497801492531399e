// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestNotesSayWhatIsNew runs make release-notes in a clone that has versions: the notes have what
// users see since the version before, and not what commits say below their first line.
func TestNotesSayWhatIsNew(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, ".", nil, "git", "clone", "--quiet", "--no-tags", root, clone)
	commit := func(message string) {
		run(t, clone, nil, "git", "-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "--allow-empty", "--message", message)
	}
	run(t, clone, nil, "git", "tag", "v0.1.0")
	commit("feat: show the first")
	run(t, clone, nil, "git", "tag", "not-a-version")
	commit("Merge branch 'side'")
	commit("fix(mock)!: drop the second\n\nIts reasons.")
	commit("docs: tell of the third")
	run(t, clone, nil, "git", "tag", "v0.2.0-rc.1")
	commit("fix: find the fourth")
	run(t, clone, nil, "git", "tag", "v0.2.0-rc.2")
	run(t, clone, nil, "git", "tag", "v0.2.0")
	for version, want := range map[string]string{
		"v0.2.0":      "- fix: find the fourth (commit)\n- fix(mock)!: drop the second (commit)\n- feat: show the first (commit)\n",
		"v0.2.0-rc.2": "- fix: find the fourth (commit)\n",
	} {
		run(t, clone, []string{"MAKEFLAGS=", "MAKELEVEL=0"}, "make", "release-notes", "VERSION="+version)
		notes, err := os.ReadFile(filepath.Join(clone, "bin", "release-notes.md"))
		if err != nil {
			t.Fatal(err)
		}
		if got := regexp.MustCompile(`[0-9a-f]{12}`).ReplaceAllString(string(notes), "commit"); got != want {
			t.Errorf("the notes of %s are\n%s, want\n%s", version, got, want)
		}
	}
}
