// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package workflows_test reads the workflows under .github: they run pinned actions and targets of
// make, with no right that they do not need. It runs none.
package workflows_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// submatches returns what the only group of an expression has found, sorted, each once.
func submatches(expression, text string) []string {
	var found []string
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// granted are the rights beyond reading, by workflow and job.
var granted = map[string]map[string]string{
	"release.yaml publish": {"contents": "write", "packages": "write", "id-token": "write", "attestations": "write"},
}

type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	// Uses is the file of another workflow, which then is the job.
	Uses        string            `json:"uses"`
	Needs       []string          `json:"needs"`
	Permissions map[string]string `json:"permissions"`
	Env         map[string]string `json:"env"`
	Steps       []step            `json:"steps"`
}

type step struct {
	Uses string         `json:"uses"`
	With map[string]any `json:"with"`
	Run  string         `json:"run"`
}

func TestWorkflows(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no workflows", err)
	}
	list := exec.CommandContext(t.Context(), "make", "-C", root, "help")
	// `make test` hands its own flags down; they are not meant for this run.
	list.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	help, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("make help: %v\n%s", err, help)
	}
	targets := submatches(`(?m)^  ([a-z0-9-]+) `, string(help))
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text := read(t, filepath.Join(".github", "workflows", filepath.Base(path)))
			var parsed workflow
			if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"contents": "read"}, parsed.Permissions); diff != "" {
				t.Errorf("permissions: -want +got:\n%s", diff)
			}
			for name, job := range parsed.Jobs {
				if diff := cmp.Diff(granted[filepath.Base(path)+" "+name], job.Permissions); diff != "" {
					t.Errorf("permissions of job %s: -want +got:\n%s", name, diff)
				}
				for _, step := range job.Steps {
					step.check(t, targets)
				}
			}
			used := strings.Count(text, "uses:") - strings.Count(text, "uses: ./")
			pinned := regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v[0-9.]+\n`).FindAllString(text, -1)
			if len(pinned) != used {
				t.Errorf("%d of %d actions are pinned by a commit, with the tag as a comment", len(pinned), used)
			}
		})
	}
}

// check expects an action, or one target of make that everybody can run.
func (s step) check(t *testing.T, targets []string) {
	t.Helper()
	if target, isMake := strings.CutPrefix(s.Run, "make "); s.Uses == "" && (!isMake || !slices.Contains(targets, target)) {
		t.Errorf("run: %q is not one target of %q", s.Run, targets)
	}
	persists, isSet := s.With["persist-credentials"].(bool)
	if strings.HasPrefix(s.Uses, "actions/checkout@") && (persists || !isSet) {
		t.Error("the token of the checkout stays where every program finds it")
	}
}

func release(t *testing.T) workflow {
	t.Helper()
	var parsed workflow
	if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/release.yaml")), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestWhatPublishesBuildsNothing: programs of others run while something is built, and must not
// find a right to publish there.
func TestWhatPublishesBuildsNothing(t *testing.T) {
	jobs := release(t).Jobs
	runs := map[string][]string{}
	for name, job := range jobs {
		for _, step := range job.Steps {
			if step.Run != "" {
				runs[name] = append(runs[name], step.Run)
			}
		}
	}
	want := map[string][]string{"build": {"make release", "make release-notes", "make image"}, "publish": {"make push-image", "make sign"}}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if image, isSet := jobs["build"].Env["IMAGE"]; image != "" || !isSet {
		t.Error("what is built is pushed at once")
	}
}

func TestAReleaseIsOfACommitThatPassesCI(t *testing.T) {
	jobs := release(t).Jobs
	if jobs["ci"].Uses != "./.github/workflows/ci.yaml" || !slices.Contains(jobs["publish"].Needs, "ci") {
		t.Errorf("publish needs %q, ci is %q", jobs["publish"].Needs, jobs["ci"].Uses)
	}
	if !strings.Contains(read(t, ".github/workflows/ci.yaml"), "\n  workflow_call:\n") {
		t.Error("ci cannot be called")
	}
}
