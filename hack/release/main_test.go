// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// newRelease is one that compiles nothing: its programs are texts.
func newRelease(t *testing.T) *release {
	t.Helper()
	return &release{Version: "v1.2.3", SourceURL: "https://github.com/owner/repository", folder: t.TempDir(),
		committed: time.Unix(1767787200, 0).UTC(),
		compile: func(_ *release, made archive, path string) error {
			return os.WriteFile(path, []byte("for "+made.OS+"/"+made.Arch), 0o700)
		}}
}

// TestKrewInstallsEachPlatform has krew validate and install what is made for it.
func TestKrewInstallsEachPlatform(t *testing.T) {
	krew, validate := tool(t, "krew"), tool(t, "validate-krew-manifest")
	t.Chdir(root)
	made := newRelease(t)
	if err := made.build(platforms); err != nil {
		t.Fatal(err)
	}
	expectChecksums(t, made.folder)
	manifest := filepath.Join(made.folder, "mcm-stackit.yaml")
	run(t, made.folder, nil, validate, "-skip-install", "-manifest", manifest)
	for _, platform := range platforms {
		t.Run(platform, func(t *testing.T) {
			installed := made.install(t, krew, platform)
			program := newArchive(platform).Program
			if got := read(t, filepath.Join(installed, program)); got != "for "+platform {
				t.Errorf("the program is %q, want that of the platform", got)
			}
			for _, license := range []string{"LICENSE", licenses} {
				if got := read(t, filepath.Join(installed, filepath.Base(license))); got != read(t, license) {
					t.Errorf("%s is not the repository's", license)
				}
			}
			info, err := os.Stat(filepath.Join(installed, program))
			if err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("mode %v (%v), want a program", info.Mode(), err)
			}
		})
	}
}

// TestRefusesVersionsThatKrewRefuses names the version, and one that is right, before anything is built.
func TestRefusesVersionsThatKrewRefuses(t *testing.T) {
	for _, wrong := range []string{"", "1.2.3", "v1.2", "v1.2.3.4", "v01.2.3", "main"} {
		made := newRelease(t)
		made.Version = wrong
		want := fmt.Sprintf("the version is %q: must be like v1.2.3 ", wrong)
		if err := made.build(platforms); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", wrong, err, want)
		}
	}
}

// TestTheProgramOfARelease also shows that two clones of a commit make the same bytes, whatever
// tags they have.
func TestTheProgramOfARelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command twice: make test-programs")
	}
	krew := tool(t, "krew")
	platform := runtime.GOOS + "/" + runtime.GOARCH
	t.Setenv("GOFLAGS", "-buildvcs=true") // as where nothing is set, and git is there
	var sums []string
	for _, tag := range []string{"one", "v0.9.0"} {
		clone := filepath.Join(t.TempDir(), "clone")
		run(t, filepath.Join(packageFolder, root), nil, "git", "clone", "--quiet", ".", clone)
		run(t, clone, nil, "git", "tag", "--force", tag)
		t.Chdir(clone)
		made := newRelease(t)
		made.compile = compile
		if err := made.build([]string{platform}); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, read(t, filepath.Join(made.folder, checksums)))
		program := filepath.Join(made.install(t, krew, platform), newArchive(platform).Program)
		if said := run(t, made.folder, nil, program, "--version"); !strings.Contains(said, "v1.2.3") {
			t.Errorf("--version says %q, want its version", said)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two clones make\n%s and\n%s", sums[0], sums[1])
	}
}

// install installs a platform's archive, which the manifest must name, with krew and without
// a network. It returns the folder with what was in the archive.
func (r *release) install(t *testing.T, krew, platform string) string {
	t.Helper()
	made := newArchive(platform)
	var plugin struct {
		Spec struct {
			Platforms []struct{ URI string }
		}
	}
	manifest := filepath.Join(r.folder, "mcm-stackit.yaml")
	if err := yaml.Unmarshal([]byte(read(t, manifest)), &plugin); err != nil {
		t.Fatal(err)
	}
	uri := r.SourceURL + "/releases/download/" + r.Version + "/" + made.Name
	if !slices.Contains(plugin.Spec.Platforms, struct{ URI string }{uri}) {
		t.Errorf("the manifest names %v, want %s among them", plugin.Spec.Platforms, uri)
	}
	home := t.TempDir()
	env := []string{"KREW_ROOT=" + home, "KREW_OS=" + made.OS, "KREW_ARCH=" + made.Arch,
		"KREW_NO_UPGRADE_CHECK=1", "HTTPS_PROXY=http://127.0.0.1:1"}
	run(t, r.folder, env, krew, "install", "--manifest="+manifest, "--archive="+filepath.Join(r.folder, made.Name))
	plugins, err := filepath.Glob(filepath.Join(home, "bin", "kubectl-mcm_stackit*"))
	if err != nil || len(plugins) != 1 {
		t.Fatalf("krew made %v (%v), want one program by which kubectl finds the plugin", plugins, err)
	}
	return filepath.Join(home, "store", "mcm-stackit", r.Version)
}

// expectChecksums expects a line for each other file of the folder, with its checksum.
func expectChecksums(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, entry := range entries {
		if entry.Name() == checksums {
			continue
		}
		sum, err := checksum(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s  %s", sum, entry.Name()))
	}
	got := strings.Split(strings.TrimSpace(read(t, filepath.Join(folder, checksums))), "\n")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || len(want) != len(platforms)+1 {
		t.Errorf("the checksums are\n%q, want\n%q", got, want)
	}
}

// packageFolder is where the tests begin.
var packageFolder, _ = os.Getwd()

// tool builds a program of krew's pinned module.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	run(t, filepath.Join(packageFolder, "..", "tools", "krew"), nil, "go", "build", "-o", path,
		"sigs.k8s.io/krew/cmd/"+name)
	return path
}

func run(t *testing.T, folder string, env []string, program string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", program, arguments, err, output, &problems)
	}
	return string(output)
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestNotesSayWhatIsNew runs make release-notes in a clone that has versions: the notes have what
// users see since the version before, and not what commits say below their first line.
func TestNotesSayWhatIsNew(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, ".", nil, "git", "clone", "--quiet", "--no-tags", root, clone)
	commit := func(message string) {
		run(t, clone, nil, "git", "-c", "user.name=n", "-c", "user.email=n@example.com", "commit",
			"--quiet", "--allow-empty", "--message", message)
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
		"v0.2.0": "- fix: find the fourth (commit)\n- fix(mock)!: drop the second (commit)\n" +
			"- feat: show the first (commit)\n",
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
