// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each situation in the page's table names a test of this package, and each name is that of a test, with rows of the
// number behind it.
func TestThePageNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("*_test.go")
	var code strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(content)
	}
	name := regexp.MustCompile(`\b(Test\w+)(?:/(\d+a?))?`)
	for _, found := range name.FindAllStringSubmatch(string(page), -1) {
		_, test, isTest := strings.Cut(code.String(), "\nfunc "+found[1]+"(t *testing.T)")
		test, _, _ = strings.Cut(test, "\n}\n")
		if !isTest || found[2] != "" && !strings.Contains(test, "\t\""+found[2]+": ") {
			t.Errorf("README.md names %s, which is no test", found[0])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| \d+a? \|.*$`).FindAllString(string(page), -1)
	if len(rows) != 29 {
		t.Errorf("README.md has %d situations, want rows 1 to 29 and 4a, but 18", len(rows))
	}
	for _, row := range rows {
		if !name.MatchString(row) && !strings.Contains(row, "_test.go") {
			t.Errorf("README.md names no test in %s", row)
		}
	}
}
