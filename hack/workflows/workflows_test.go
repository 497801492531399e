// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package workflows_test reads what is under .github: the workflows run pinned actions and
// targets of make, and Renovate's expressions find what they are for. It runs neither.
package workflows_test

import (
	"encoding/json"
	"io/fs"
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

// granted are the rights beyond reading that a workflow's one job has.
var granted = map[string]map[string]string{
	"release.yaml": {"contents": "write", "packages": "write", "id-token": "write", "attestations": "write"},
}

type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions    map[string]string `json:"permissions"`
		TimeoutMinutes int               `json:"timeout-minutes"`
		Steps          []step            `json:"steps"`
	} `json:"jobs"`
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
	golang := submatches(`FROM .*golang:(\S+) AS builder`, read(t, "Dockerfile"))
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
				if diff := cmp.Diff(granted[filepath.Base(path)], job.Permissions); diff != "" {
					t.Errorf("permissions of job %s: -want +got:\n%s", name, diff)
				}
				if job.TimeoutMinutes == 0 {
					t.Errorf("job %s has no timeout", name)
				}
				for _, step := range job.Steps {
					step.check(t, targets)
				}
			}
			if used := submatches(`go-version: '(.*)'`, text); !slices.Equal(used, golang) {
				t.Errorf("Go %q, the Dockerfile has %q", used, golang)
			}
			if pinned, used := strings.Count(text, "uses:"), len(regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v[0-9.]+\n`).FindAllString(text, -1)); pinned != used {
				t.Errorf("%d of %d actions are pinned by a commit, with the tag as a comment", used, pinned)
			}
		})
	}
}

// What costs money runs when somebody asks for it, and for nobody's pull request.
func TestCloudRunsOnDemandAlone(t *testing.T) {
	text := read(t, ".github/workflows/cloud.yaml")
	if on := submatches(`(?ms)^on:\n(.*?)\n\n`, text); !slices.Equal(on, []string{"  workflow_dispatch:"}) {
		t.Errorf("it runs on %q", on)
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

// The module's path is also that of another program, whose packages are not ours to fill.
func TestAReleaseGoesToItsOwnRepository(t *testing.T) {
	var parsed struct {
		Jobs struct {
			Release struct{ Env map[string]string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/release.yaml")), &parsed); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"VERSION":    "${{ github.ref_name }}",
		"IMAGE":      "ghcr.io/${{ github.repository }}",
		"SOURCE_URL": "${{ github.server_url }}/${{ github.repository }}",
	}
	if diff := cmp.Diff(want, parsed.Jobs.Release.Env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type renovate struct {
	Kubernetes     patterns `json:"kubernetes"`
	CustomManagers []struct {
		patterns

		Description  string   `json:"description"`
		MatchStrings []string `json:"matchStrings"`
	} `json:"customManagers"`
}

type patterns struct {
	ManagerFilePatterns []string `json:"managerFilePatterns"`
}

// A tool's module is required indirectly, which Renovate leaves alone unless it is told.
func TestRenovateUpdatesEachTool(t *testing.T) {
	var config struct {
		PackageRules []struct {
			MatchDepTypes, MatchFileNames, MatchPackageNames []string
		}
	}
	if err := json.Unmarshal([]byte(read(t, ".github/renovate.json")), &config); err != nil {
		t.Fatal(err)
	}
	covered := map[string][]string{} // by the file's pattern
	for _, rule := range config.PackageRules {
		for _, pattern := range rule.MatchFileNames {
			covered[pattern] = append(covered[pattern], rule.MatchPackageNames...)
		}
	}
	for _, path := range repository(t) {
		for pattern, names := range covered {
			if matches, err := filepath.Match(pattern, path); err != nil || !matches {
				continue
			}
			for _, tool := range toolModules(t, path) {
				if !slices.Contains(names, tool) {
					t.Errorf("%s: Renovate is not told of %s", path, tool)
				}
			}
		}
	}
}

// toolModules returns the modules of a go.mod's tools that it requires indirectly.
func toolModules(t *testing.T, path string) []string {
	t.Helper()
	text := read(t, path)
	var modules []string
	for _, tool := range submatches(`(?m)^(?:tool |\t)([a-z][^\s(]+/\S+)$`, text) {
		found := ""
		for _, module := range submatches(`(?m)^\t?(?:require )?([a-z]\S+) v\S+ // indirect`, text) {
			if strings.HasPrefix(tool+"/", module+"/") && len(module) > len(found) {
				found = module
			}
		}
		if found == "" {
			t.Errorf("%s: no module for the tool %s", path, tool)
		}
		modules = append(modules, found)
	}
	return modules
}

// files returns the files that the patterns match; each must match one.
func (p patterns) files(t *testing.T, all []string) []string {
	t.Helper()
	var matched []string
	for _, pattern := range p.ManagerFilePatterns {
		expression := regexp.MustCompile(strings.Trim(pattern, "/"))
		before := len(matched)
		for _, path := range all {
			if expression.MatchString(path) {
				matched = append(matched, path)
			}
		}
		if len(matched) == before {
			t.Errorf("no file is %s", pattern)
		}
	}
	return matched
}

// values returns what the group currentValue of the expressions finds in files, each once.
// Each expression and each file must take part.
func values(t *testing.T, expressions, files []string) []string {
	t.Helper()
	var found []string
	idle := slices.Clone(files)
	for _, expression := range expressions {
		compiled := regexp.MustCompile(expression)
		before := len(found)
		for _, path := range files {
			for _, match := range compiled.FindAllStringSubmatch(read(t, path), -1) {
				found = append(found, match[compiled.SubexpIndex("currentValue")])
				idle = slices.DeleteFunc(idle, func(other string) bool { return other == path })
			}
		}
		if len(found) == before {
			t.Errorf("nothing is %s", expression)
		}
	}
	if len(idle) > 0 {
		t.Errorf("nothing is found in %q", idle)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestRenovateFindsVersions(t *testing.T) {
	var config renovate
	if err := json.Unmarshal([]byte(read(t, ".github/renovate.json")), &config); err != nil {
		t.Fatal(err)
	}
	all := repository(t)
	manager := submatches(`gardener/machine-controller-manager (v\S+)`, read(t, "go.mod"))
	for _, path := range config.Kubernetes.files(t, all) {
		if found := submatches(`image: .*/machine-controller-manager:(\S+)`, read(t, path)); !slices.Equal(found, manager) {
			t.Errorf("%s has the manager's image %q, go.mod %q", path, found, manager)
		}
	}
	envtest := submatches(`envtestVersion = "(.*)"`, read(t, "test/localenv/stack/download.go"))
	want := map[string][]string{
		"The base of the image that ko builds":                                  submatches(`FROM gcr.io/distroless/[^:]+:([^@\s]+)`, read(t, "Dockerfile")),
		"The manager's version, where others than go.mod and manifests name it": manager,
		"The control plane of the tests":                                        envtest,
		"Its checksums, one archive a line":                                     {"envtest-v" + envtest[0]},
	}
	got := map[string][]string{}
	for _, custom := range config.CustomManagers {
		got[custom.Description] = values(t, custom.MatchStrings, custom.files(t, all))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// repository returns the paths of all files but those that are built.
func repository(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "bin"}, path) {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
