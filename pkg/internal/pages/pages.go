// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package pages provides a test helper that compares the tests that a page links with the code.
package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
