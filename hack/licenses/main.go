// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command licenses writes one file with the licenses and notices of all modules that are linked
// into the published programs: their licenses require that every copy of a program includes them.
// ko, the Dockerfile and the archives of a release include the file from the repository.
//
// The file contains no versions. So it changes only if an update adds or removes a module, or
// changes a license, which then needs a review.
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
	// platforms are the platforms of the images and the archives: some modules are linked only for
	// one platform.
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
		fmt.Fprintln(os.Stderr, "usage: licenses <file to write>")
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

// texts maps each text to the files ("module: path") that contain it: most modules share a few
// texts.
type texts map[string][]string

// collect returns the texts of all linked modules.
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
	packages, err := linkedPackages()
	if err != nil {
		return nil, err
	}
	for _, one := range packages {
		if err := found.add(one, read); err != nil {
			return nil, err
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

// linkedPackages returns the packages of other modules that are linked for any platform.
func linkedPackages() (packages []linked, err error) {
	for _, platform := range platforms {
		linked, err := list(platform)
		if err != nil {
			return nil, err
		}
		packages = append(packages, linked...)
	}
	return packages, nil
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

// add adds the texts in a package's folder and its parent folders, up to the folder of the module:
// code that a module copied from elsewhere has its license in its own folder. It skips folders that
// were read before, and fails if the module's folder has no license.
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
			return fmt.Errorf("module %s has no license file in %s", one.Module.Path, dir)
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

// normalized removes the parts in which copies of the same license usually differ.
func normalized(content []byte) string {
	return strings.Trim(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n ")
}

// String returns the content of the output file: each text once, below the names of the files that
// contain it.
func (t texts) String() string {
	var sections []string
	for text, files := range t {
		slices.Sort(files)
		sections = append(sections, strings.Join(files, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(sections)
	return heading + rule + strings.Join(sections, rule)
}
