// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

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

func TestNoticedNamesRulesOfTheList(t *testing.T) {
	content, err := os.ReadFile("noticed.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := writeNoticed(readNoticed(string(content))); got != string(content) {
		t.Error("noticed.txt names rules that are not in the list, or in another order: make mutants writes it anew")
	}
}

func TestFailedTest(t *testing.T) {
	const end = "FAIL\nFAIL\t" + module + "/pkg/spi\t0.1s\n"
	for output, want := range map[string]string{
		"ok  	package	1s": "",
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/row (0.1s)\n" + end:                                   "TestA/row",
		"--- FAIL: TestA (0.1s)\n--- FAIL: TestB (0.1s)\n" + end:                                           "TestA",
		"panic: test timed out after 8m0s\n\trunning tests:\n\t\tTestC/row (8m0s)\n\ngoroutine 1:\n" + end: "TestC/row",
	} {
		if got := failedTest(output); got.name != want || want != "" && got.pkg != "./pkg/spi" {
			t.Errorf("%v in %q, want %q", got, output, want)
		}
	}
}

func TestExactly(t *testing.T) {
	if got := exactly("TestA/no_(zone)"); got != `^TestA$/^no_\(zone\)$` {
		t.Error(got)
	}
}
