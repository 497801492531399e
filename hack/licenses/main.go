// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command licenses writes one file with the licenses and notices of all that is linked into the programs
// that are published: whoever passes a program on has to pass these on. ko, the Dockerfile and the
// archives of a release take the file as it is in the repository.
//
// It names no versions, so that an update changes it only if a license or a module does, which is to be looked at.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:generate go run . ../../cmd/machine-controller/kodata/THIRD-PARTY-LICENSES

var (
	programs = []string{"../../cmd/machine-controller", "../../cmd/mcm-stackit"}
	// platforms are those of the images and of the archives: some modules are linked for one alone.
	platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
	// isText matches the names of files with licenses and notices.
	isText = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|notice|copying|copyright|patents)`)
)

const (
	heading = "Licenses and notices of what machine-controller and mcm-stackit are linked with, on all platforms.\n"
	rule    = "\n================================================================================\n"
	golang  = "Go's standard library"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "name the file to write")
		os.Exit(1)
	}
	texts, err := collect()
	if err == nil {
		//nolint:gosec // all may read it, in an image, too
		err = os.WriteFile(filepath.Clean(os.Args[1]), []byte(texts.String()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// texts has the files ("module: path") in which each text is found: most modules have the same few.
type texts map[string][]string

// collect returns the texts of all that is linked.
func collect() (texts, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	found, read := texts{}, map[string]bool{}
	library := linked{Dir: strings.TrimSpace(string(goroot))}
	library.Module.Path, library.Module.Dir = golang, library.Dir
	if err := found.add(library, read); err != nil {
		return nil, err
	}
	for _, platform := range platforms {
		packages, err := list(platform)
		if err != nil {
			return nil, err
		}
		for _, one := range packages {
			if err := found.add(one, read); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// linked is a package that is linked into a program.
type linked struct {
	Dir    string
	Module struct {
		Path, Dir string
		Main      bool
	}
}

// list returns the packages of other modules that are linked for a platform.
func list(platform string) ([]linked, error) {
	system, architecture, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Module"}, programs...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w", platform, err)
	}
	var packages []linked
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one linked
		err := decoder.Decode(&one)
		switch {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, err
		case one.Module.Path != "" && !one.Module.Main: // not the standard library's, and not ours
			packages = append(packages, one)
		}
	}
}

// add adds the texts in a package's folder and in those above it, up to its module's: what a module took from
// elsewhere has its license in a folder of its own. It passes over folders that were read, and fails if the
// module's has no license.
func (t texts) add(one linked, read map[string]bool) error {
	for dir := one.Dir; !read[dir]; dir = filepath.Dir(dir) {
		read[dir] = true
		names, err := t.addFolder(one, dir)
		if err != nil {
			return err
		}
		if dir != one.Module.Dir {
			continue
		}
		if !slices.ContainsFunc(names,
			func(name string) bool { return !strings.HasPrefix(strings.ToUpper(name), "NOTICE") }) {
			return fmt.Errorf("%s has no license in %s", one.Module.Path, dir)
		}
		return nil
	}
	return nil
}

// addFolder returns the names of the texts in the folder.
func (t texts) addFolder(one linked, dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || !isText.MatchString(name) || strings.HasSuffix(name, ".go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(one.Module.Dir, filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		text := normalized(content)
		t[text] = append(t[text], one.Module.Path+": "+filepath.ToSlash(relative))
		names = append(names, name)
	}
	return names, nil
}

// normalized leaves out in what copies of a license differ most.
func normalized(content []byte) string {
	return strings.Trim(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n ")
}

// String returns the content of the file: each text once, below the names of its files.
func (t texts) String() string {
	var sections []string
	for text, files := range t {
		slices.Sort(files)
		sections = append(sections, strings.Join(files, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(sections)
	return heading + rule + strings.Join(sections, rule)
}
