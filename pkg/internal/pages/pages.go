// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package pages provides a test helper that compares numbers in pages with the code's constants.
package pages

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var number = regexp.MustCompile(`\d+`)

// HaveNumbers fails the test unless each sentence is in its page, and nowhere there with another
// number. Sentences are by the path of the page; line breaks do not count.
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
				t.Errorf("%s has to say %q by the constants of the code, and says %q", page, want, like)
			}
		}
	}
}
