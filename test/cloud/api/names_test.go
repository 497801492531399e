// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"
	"time"
)

func TestWhoseNameItIs(t *testing.T) {
	const run = "20261123-071100-abcd"
	for name, want := range map[string]bool{
		NetworkName(run): true, Name(run, "first"): true,
		NetworkName(run) + "x": false, "x" + NetworkName(run): false, Prefix + "by-hand": false, Prefix: false,
		NetworkName("prod"): false, "shoot--prod--workers-" + run: false, NetworkName("20261123-071100-ABCD"): false,
	} {
		if got, ours := RunOf(name); ours != want || ours && got != run {
			t.Errorf("%s: run %q, %t", name, got, ours)
		}
	}
}

func TestRuns(t *testing.T) {
	now := time.Now()
	run := NewRun(now)
	if !IsRun(run) || IsRun(run+"-2") || IsRun("prod") || run == NewRun(now) {
		t.Error(run)
	}
	if IsOld(run, now.Add(OldAfter-time.Minute)) || !IsOld(run, now.Add(OldAfter+time.Minute)) || IsOld("prod", now) {
		t.Error("the age of a run is that of its name")
	}
}

func TestTextEndsWithAWord(t *testing.T) {
	a := Answer{Body: []byte(strings.Repeat("a ", 95) + "somebody@example.com may not")}
	if text := a.Text(); strings.Contains(text, "some") || len(text) < 180 {
		t.Error(text)
	}
}
