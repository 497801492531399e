// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package pages provides test helpers that compare pages with the code: its constants, and its tests.
package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var number = regexp.MustCompile(`\d+`)

// HaveNumbers fails the test unless each page contains its sentences, and contains none of them
// with another number. sentences maps the path of a page to its sentences; line breaks do not
// matter.
func HaveNumbers(t *testing.T, sentences map[string][]string) {
	t.Helper()
	for page, ofPage := range sentences {
		content, err := os.ReadFile(page) //nolint:gosec // a page of the repository
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(content)), " ")
		for _, want := range ofPage {
			like := regexp.MustCompile(number.ReplaceAllString(regexp.QuoteMeta(want), `\d+`)).FindAllString(text, -1)
			if len(like) == 0 || slices.ContainsFunc(like, func(found string) bool { return found != want }) {
				t.Errorf("%s must contain %q, as the constants in the code require, but contains %q", page, want, like)
			}
		}
	}
}

var linkedTest = regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]+)\)`)

// HaveTests fails the test unless each test that the page links is in the linked file.
func HaveTests(t *testing.T, page string) {
	t.Helper()
	content, err := os.ReadFile(page) //nolint:gosec // a page of the repository
	if err != nil {
		t.Fatal(err)
	}
	links := linkedTest.FindAllStringSubmatch(string(content), -1)
	if len(links) == 0 {
		t.Errorf("%s links no test", page)
	}
	for _, link := range links {
		code, err := os.ReadFile(filepath.Join(filepath.Dir(page), link[2]))
		if err != nil || !strings.Contains(string(code), "func "+link[1]+"(") {
			t.Errorf("%s: %s is not in %s: %v", page, link[1], link[2], err)
		}
	}
}
