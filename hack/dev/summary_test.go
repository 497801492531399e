// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestInventorySince(t *testing.T) {
	cloud := iaasmock.New()
	before := takeInventory(cloud)
	if len(before) == 0 {
		t.Fatal("the catalogue's NICs and volumes are missing")
	}
	if left := takeInventory(cloud).since(before); left != nil {
		t.Errorf("nothing has changed, but there is %v", left)
	}
	now := inventory{"a": "server a", "b": "NIC b", "c": "volume c", "e": "NIC e (, attached to a)"}
	earlier := inventory{"c": "volume c", "d": "volume d", "e": "NIC e ()"}
	if diff := cmp.Diff([]string{"NIC b", "NIC e (, attached to a)", "server a"}, now.since(earlier)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"volume d"}, now.lostSince(earlier)); diff != "" {
		t.Error(diff)
	}
}

func TestCalledWrongly(t *testing.T) {
	for name, args := range map[string][]string{
		"without a command":  nil,
		"an unknown command": {"up"},
		"an unknown flag":    {"dev", "--fast"},
		"no duration":        {"demo", "--boot", "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := run(args, nil, &stderr); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr.String(), "Usage:") {
				t.Errorf("no usage shown, but %q", stderr.String())
			}
		})
	}
}

func TestFailedStartIsReported(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	var stderr bytes.Buffer
	if code := run([]string{"demo"}, out, &stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if want := "Failed: programs: stat " + assets; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want it to say %q", stderr.String(), want)
	}
}
