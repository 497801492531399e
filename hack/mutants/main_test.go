// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// The list has to follow the code; running it all takes too long for here.
func TestEveryMutantCanBeMade(t *testing.T) {
	t.Chdir("../..")
	if len(mutants) < 20 {
		t.Errorf("only %d mutants", len(mutants))
	}
	for _, m := range mutants {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.rule, err)
		}
	}
}

func TestFailedTest(t *testing.T) {
	for output, want := range map[string]string{
		"ok  	package	1s": "",
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/row (0.1s)\nFAIL": "TestA/row",
		"--- FAIL: TestA (0.1s)\n--- FAIL: TestB (0.1s)\nFAIL":         "TestA",
		"panic: test timed out after 8m0s":                             "a test does not end",
	} {
		if got := failedTest(output); got != want {
			t.Errorf("%q in %q, want %q", got, output, want)
		}
	}
}
