// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFileIsCurrent(t *testing.T) {
	published, err := os.ReadFile("../../cmd/machine-controller/kodata/THIRD-PARTY-LICENSES")
	if err != nil {
		t.Fatal(err)
	}
	current, err := collect()
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != current.String() {
		t.Error("the file is not what is linked: make generated writes it. Look at what changes: is a license new?")
	}
}

func TestWhichTextsOfAModuleAreFound(t *testing.T) {
	folder := t.TempDir()
	for path, content := range map[string]string{
		"LICENSE":                  "of the module\r\nin two lines\n",
		"NOTICE.txt":               "its notice",
		"third_party/COPYING":      "above the package",
		"third_party/x/NOTICE":     "of the package",
		"third_party/y/NOTICE":     "of a package that is not linked",
		"third_party/x/license.go": "package x",
		"LICENSES/other.txt":       "of no program",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := linked{Dir: filepath.Join(folder, "third_party", "x")}
	one.Module.Path, one.Module.Dir = "example.com/module", folder
	found, read := texts{}, map[string]bool{}
	for range 2 {
		if err := found.add(one, read); err != nil {
			t.Fatal(err)
		}
	}
	const section = rule + "example.com/module: "
	want := heading + section + "LICENSE\n\nof the module\nin two lines\n" + section + "NOTICE.txt\n\nits notice\n" +
		section + "third_party/COPYING\n\nabove the package\n" + section + "third_party/x/NOTICE\n\nof the package\n"
	if got := found.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if err := os.Remove(filepath.Join(folder, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	if err := found.add(one, map[string]bool{}); err == nil ||
		!strings.Contains(err.Error(), "example.com/module has no license") {
		t.Errorf("a module without a license: %v", err)
	}
}
