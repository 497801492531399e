// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/version"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository's.
const root = "../.."

// pages returns the paths of all Markdown files, from the root.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "bin" || path == ".git"):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d pages: %v", len(found), err)
	}
	return found
}

var (
	code    = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	// dropped are the signs that GitHub drops from a heading to make its anchor.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// anchors returns what a link to a part of the page may name.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, match := range heading.FindAllStringSubmatch(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text(t, page), ""), -1) {
		anchor := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(text(t, page), ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			links++
			path, anchor, anchored := strings.Cut(match[1], "#")
			target := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				target = page
			}
			info, err := os.Stat(filepath.Join(root, target))
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, match[1])
				continue
			}
			if info.IsDir() {
				target = filepath.Join(target, "README.md") // what GitHub shows of a folder
			}
			if anchored && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: the link to %s leads to no heading of %s", page, match[1], target)
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were found", links)
	}
}

// proof is a link to a test by its name.
var proof = regexp.MustCompile(`\[((?:Test|Benchmark|Fuzz)\w+)\]\(([^)\s]+)\)`)

func TestNamedTestsExist(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for _, match := range proof.FindAllStringSubmatch(text(t, page), -1) {
			found++
			file := filepath.Join(filepath.Dir(page), match[2])
			if content, err := os.ReadFile(filepath.Join(root, file)); err != nil || !strings.Contains(string(content), "\nfunc "+match[1]+"(") {
				t.Errorf("%s: there is no %s in %s", page, match[1], file)
			}
		}
	}
	if found == 0 {
		t.Error("no page names a test")
	}
}

// A threat that nothing is proved against has no place in the table.
func TestEveryThreatHasATest(t *testing.T) {
	tables := 0
	for _, page := range pages(t) {
		inTable := false
		for line := range strings.Lines(text(t, page)) {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			header := strings.HasPrefix(line, "| Actor | ") && cells[len(cells)-1] == "Test |"
			inTable = header || inTable && strings.HasPrefix(line, "|")
			switch {
			case header:
				tables++
			case inTable && !strings.HasPrefix(line, "|---") && !proof.MatchString(cells[len(cells)-1]):
				t.Errorf("%s: no test in %s", page, line)
			}
		}
	}
	if tables == 0 {
		t.Error("no page has a table of threats")
	}
}

func TestTheFrontPageIsShort(t *testing.T) {
	if lines := strings.Count(text(t, "README.md"), "\n"); lines > 120 {
		t.Errorf("README.md has %d lines, want at most 120", lines)
	}
}

// The oldest Go that all modules take is what the pages ask for.
func TestPagesAskForTheGoThatModulesNeed(t *testing.T) {
	var needed string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == "bin", path == ".git":
			return fs.SkipDir
		case entry.Name() == "go.mod":
			_, line, _ := strings.Cut(text(t, path), "\ngo ")
			asked, _, _ := strings.Cut(line, "\n")
			if version.Compare("go"+asked, "go"+needed) > 0 {
				needed = asked
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"README.md", ".github/CONTRIBUTING.md"} {
		if want := "Go " + needed + " or newer"; !strings.Contains(text(t, page), want) {
			t.Errorf("%s: want %q", page, want)
		}
	}
}
