// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// published is the file that images and archives have.
func published(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../cmd/machine-controller/kodata/THIRD-PARTY-LICENSES")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTheFileIsCurrent(t *testing.T) {
	current, err := collect()
	if err != nil {
		t.Fatal(err)
	}
	if published(t) != current.String() {
		t.Error("the file is not what is linked: make generated writes it. Look at what changes: is a license new?")
	}
}

// modules are those that the file names.
func modules(content string) []string {
	found := map[string]bool{}
	for _, section := range strings.Split(content, rule)[1:] {
		files, _, _ := strings.Cut(section, "\n\n")
		for line := range strings.Lines(files) {
			module, _, _ := strings.Cut(line, ": ")
			found[module] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// What the built programs say of themselves is asked on this platform, and of the others Go.
func TestTheModulesAreThoseOfThePrograms(t *testing.T) {
	want := map[string]bool{golang: true}
	packages, err := linkedPackages()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range packages {
		want[one.Module.Path] = true
	}
	if got := modules(published(t)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the file names\n%q, want\n%q", got, slices.Sorted(maps.Keys(want)))
	}
	if testing.Short() {
		t.Skip("builds the programs")
	}
	for _, program := range programs {
		path := filepath.Join(t.TempDir(), "program")
		if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, program).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		built, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(built.Deps) < 20 {
			t.Errorf("%s is of %d modules, want those of Kubernetes among them", program, len(built.Deps))
		}
		for _, module := range built.Deps {
			if !want[module.Path] {
				t.Errorf("%s is linked with %s, which the file does not name", program, module.Path)
			}
		}
	}
}

// Whatever is called after a license or a notice, beside a package that is linked or above it, is there.
func TestTheFileHasEachText(t *testing.T) {
	content, text := published(t), regexp.MustCompile(`(?i)(licen[cs]e|notice|copyright)[^/]*$`)
	packages, err := linkedPackages()
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, one := range packages {
		for dir := one.Dir; strings.HasPrefix(dir, one.Module.Dir) && !read[dir]; dir = filepath.Dir(dir) {
			read[dir] = true
			paths, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				if info, err := os.Stat(path); err != nil || info.IsDir() || !text.MatchString(path) ||
					filepath.Ext(path) == ".go" {
					continue
				}
				wanted, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(content, strings.TrimSpace(string(wanted))) {
					t.Errorf("the file lacks the text of %s", path)
				}
			}
		}
	}
}

func TestWhichTextsOfAModuleAreFound(t *testing.T) {
	folder := t.TempDir()
	for path, content := range map[string]string{
		"LICENSE":                  "of the module\r\nin two lines\n",
		"NOTICE.txt":               "its notice",
		"third_party/COPYING":      "above the package",
		"third_party/x/NOTICE":     "of the package",
		"third_party/y/NOTICE":     "of a package that is not linked",
		"third_party/x/license.go": "package x",
		"LICENSES/other.txt":       "of no program",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := linked{Dir: filepath.Join(folder, "third_party", "x")}
	one.Module.Path, one.Module.Dir = "example.com/module", folder
	found, read := texts{}, map[string]bool{}
	for range 2 {
		if err := found.add(one, read); err != nil {
			t.Fatal(err)
		}
	}
	const section = rule + "example.com/module: "
	want := heading + section + "LICENSE\n\nof the module\nin two lines\n" + section + "NOTICE.txt\n\nits notice\n" +
		section + "third_party/COPYING\n\nabove the package\n" + section + "third_party/x/NOTICE\n\nof the package\n"
	if got := found.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if err := os.Remove(filepath.Join(folder, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	if err := found.add(one, map[string]bool{}); err == nil ||
		!strings.Contains(err.Error(), "example.com/module has no license") {
		t.Errorf("a module without a license: %v", err)
	}
}
