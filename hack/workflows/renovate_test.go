// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package workflows_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
