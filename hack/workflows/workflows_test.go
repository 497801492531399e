// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package workflows_test reads the workflows under .github: they run pinned actions and targets of
// make, and what publishes builds nothing. It runs none of them, but those targets of make to which a tag
// hands its name.
package workflows_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

type workflow struct {
	Env         map[string]string `json:"env"`
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	// Uses is the file of another workflow, which then is the job.
	Uses        string            `json:"uses"`
	Needs       []string          `json:"needs"`
	Permissions map[string]string `json:"permissions"`
	Steps       []struct {
		Uses string         `json:"uses"`
		With map[string]any `json:"with"`
		Run  string         `json:"run"`
	} `json:"steps"`
}

// publishing are the targets that a job with rights may run: programs of others, which may run
// while something is built, must not find a right to publish.
var publishing = []string{"push-image", "sign"}

var (
	listed = regexp.MustCompile(`(?m)^  ([a-z0-9-]+) `)
	pinned = regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v[0-9.]+\n`)
)

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
	var targets []string
	for _, match := range listed.FindAllStringSubmatch(string(help), -1) {
		targets = append(targets, match[1])
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var parsed workflow
			if err := yaml.Unmarshal(text, &parsed); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(parsed.Permissions, map[string]string{"contents": "read"}) {
				t.Errorf("permissions %v, want to read the contents", parsed.Permissions)
			}
			for name, job := range parsed.Jobs {
				job.check(t, name, parsed.Jobs, targets)
				if _, isVersioned := parsed.Env["VERSION"]; isVersioned && job.Uses == "" &&
					!slices.Contains(ofReleases, job.firstTarget()) {
					t.Errorf("job %s runs make %s first, want one of %q, which checks the VERSION",
						name, job.firstTarget(), ofReleases)
				}
			}
			used := strings.Count(string(text), "uses:") - strings.Count(string(text), "uses: ./")
			if got := len(pinned.FindAll(text, -1)); got != used {
				t.Errorf("%d of %d actions are pinned by a commit, with the tag as a comment", got, used)
			}
		})
	}
}

// firstTarget is the first target of make that the job runs.
func (j job) firstTarget() string {
	for _, step := range j.Steps {
		if target, isMake := strings.CutPrefix(step.Run, "make "); isMake {
			return target
		}
	}
	return ""
}

// check expects that each step is an action or one target of make, and that a job with rights only
// publishes, and only what has passed CI.
func (j job) check(t *testing.T, name string, jobs map[string]job, targets []string) {
	t.Helper()
	allowed := targets
	if len(j.Permissions) > 0 {
		allowed = publishing
		isCI := func(other string) bool { return jobs[other].Uses == "./.github/workflows/ci.yaml" }
		if !slices.ContainsFunc(j.Needs, isCI) {
			t.Errorf("job %s has rights and needs %v, want CI among them", name, j.Needs)
		}
	}
	for _, step := range j.Steps {
		target, isMake := strings.CutPrefix(step.Run, "make ")
		if step.Uses == "" && (!isMake || !slices.Contains(allowed, target)) {
			t.Errorf("job %s runs %q, want one target of %q", name, step.Run, allowed)
		}
		persists, isSet := step.With["persist-credentials"].(bool)
		if strings.HasPrefix(step.Uses, "actions/checkout@") && (persists || !isSet) {
			t.Errorf("job %s leaves the token of the checkout where every program finds it", name)
		}
	}
}
