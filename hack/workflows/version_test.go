// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package workflows_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	// ofReleases are the targets that take no version but that of a release.
	ofReleases = []string{"release", "push-image"}
	// ofAnyVersion are those that take others, too.
	ofAnyVersion = []string{"build", "mcm-stackit", "image"}
)

// hostile are programs that leave the file "made" if they are run. Git takes all but the last three for
// the name of a tag.
var hostile = []string{
	"v1.2.3`touch${IFS}made`", "v1.2.3$(touch${IFS}made)", "v1.2.3;touch${IFS}made;", "v1.2.3';touch${IFS}made;'",
	`v1.2.3";touch${IFS}made;"`, "v1.2.3$(shell touch made)", "v1.2.3\ntouch made", "v1.2.3 -extld=made",
}

// repository is a folder with the Makefile and a commit, where programs that are stubs say what they are run with.
type repository struct {
	*testing.T
	folder string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, t.TempDir()}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	r.write("Makefile", string(makefile), 0o600)
	r.write("cmd/mcm-stackit/kubectl_complete-mcm_stackit", "", 0o600) // which is copied
	r.write("stub", "#!/bin/sh\nmkdir -p bin/release\necho \"$@\" \"VERSION=$VERSION\" >>ran\n", 0o700)
	r.git("init", "--quiet")
	r.git("add", "Makefile")
	r.git("commit", "--quiet", "--message", "first")
	return r
}

func (r *repository) write(name, content string, mode fs.FileMode) {
	r.Helper()
	path := filepath.Join(r.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), mode)); err != nil {
		r.Fatal(err)
	}
}

func (r *repository) git(arguments ...string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git",
		append([]string{"-c", "user.name=n", "-c", "user.email=n@example.com"}, arguments...)...)
	cmd.Dir = r.folder
	if output, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("git %q: %v\n%s", arguments, err, output)
	}
}

// make runs a target with settings ("NAME=value") of its environment and of its command line. It returns what
// make says and what the stubs were run with.
func (r *repository) make(target string, environment []string, arguments ...string) (said, ran string, err error) {
	r.Helper()
	stub := filepath.Join(r.folder, "stub")
	cmd := exec.CommandContext(r.Context(), "make", append([]string{target,
		"GO=" + stub, "KO=" + stub, "CRANE=" + stub, "COSIGN=" + stub, "GITHUB_OUTPUT="}, arguments...)...)
	cmd.Dir, cmd.Env = r.folder, slices.Concat(os.Environ(),
		[]string{"MAKEFLAGS=", "MAKELEVEL=0", "VERSION=", "IMAGE=", "BASE_IMAGE=", "SOURCE_URL="}, environment)
	output, err := cmd.CombinedOutput()
	log := filepath.Join(r.folder, "ran")
	logged, _ := os.ReadFile(log) // there is none if no stub ran
	_ = os.Remove(log)
	return string(output), string(logged), err
}

// expectNothingMade fails if a name was run as a program.
func (r *repository) expectNothingMade(target, name string) {
	r.Helper()
	if os.Remove(filepath.Join(r.folder, "made")) == nil {
		r.Errorf("make %s ran %q", target, name)
	}
}

// The name of a tag is chosen by whoever may push one, and the workflow of a release has rights.
func TestNoTargetRunsAVersion(t *testing.T) {
	r := newRepository(t)
	for variable, targets := range map[string][]string{
		"VERSION":    slices.Concat(ofReleases, ofAnyVersion, []string{"release-notes", "sign"}),
		"IMAGE":      {"image", "push-image"},
		"BASE_IMAGE": {"image"},
		"SOURCE_URL": {"image", "release"},
	} {
		for _, target := range targets {
			for _, value := range hostile {
				setting := variable + "=" + value
				for from, run := range map[string]func() (said, ran string, err error){
					"environment":  func() (string, string, error) { return r.make(target, []string{setting}) },
					"command line": func() (string, string, error) { return r.make(target, nil, setting) },
				} {
					said, _, err := run()
					want := variable + " is '" + value + "': must be made of letters, digits and ._~:/@%+-"
					if err == nil || !strings.Contains(said, want) {
						t.Errorf("make %s with %q in its %s: %v, want %q\n%s", target, setting, from, err, want, said)
					}
					r.expectNothingMade(target, value)
				}
			}
		}
	}
}

// Without a VERSION a build's is that of git, which a tag names, too.
func TestNoTargetRunsATag(t *testing.T) {
	for _, name := range hostile {
		r := newRepository(t)
		cmd := exec.CommandContext(t.Context(), "git", "check-ref-format", "refs/tags/"+name)
		if cmd.Run() != nil {
			continue
		}
		r.git("tag", "--annotate", "--message", "a release", name)
		for _, target := range append([]string{"release-notes"}, ofAnyVersion...) {
			said, ran, err := r.make(target, nil)
			if err != nil {
				t.Errorf("make %s: %v\n%s", target, err, said)
			}
			if target == "image" && !strings.Contains(ran, name) {
				t.Errorf("make %s ran %q, want the version %s", target, ran, name)
			}
			r.expectNothingMade(target, name)
		}
	}
}

func TestOnlyVersionsOfReleasesArePublished(t *testing.T) {
	r := newRepository(t)
	settings := []string{"IMAGE=registry.example.com:5000/owner/provider",
		"SOURCE_URL=https://example.com/~owner/provider"}
	for _, target := range ofReleases {
		for _, version := range []string{"", "dev", "main", "1.2.3", "v1.2", "v1.2.3.4", "v1.2.3-", "v1.2.3-rc/1",
			"xv1.2.3"} {
			said, ran, err := r.make(target, settings, "VERSION="+version)
			want := "VERSION is '" + version + "': must be the tag of a release, such as v1.2.3 or v1.2.3-rc.1\n"
			if err == nil || !strings.Contains(said, want) || strings.Contains(ran, version+" ") && version != "" {
				t.Errorf("make %s of %q: %v, ran %q, want %q\n%s", target, version, err, ran, want, said)
			}
		}
		for _, version := range []string{"v1.2.3", "v10.20.30-rc.1"} {
			if said, ran, err := r.make(target, settings, "VERSION="+version); err != nil || !strings.Contains(ran, version) {
				t.Errorf("make %s of %q: %v, ran %q\n%s", target, version, err, ran, said)
			}
		}
	}
	for _, target := range ofAnyVersion {
		for _, version := range []string{"dev", "v1.2.3-4-g0123456789ab-dirty", "feature/x"} {
			if said, ran, err := r.make(target, settings, "VERSION="+version); err != nil || !strings.Contains(ran, version) {
				t.Errorf("make %s of %q: %v, ran %q\n%s", target, version, err, ran, said)
			}
		}
	}
}
