// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// isSubpackage reports whether a file belongs to a package that the root package imports.
func isSubpackage(path string) bool {
	for _, folder := range []string{"fault", "console", "internal"} {
		if strings.HasPrefix(path, folder+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// TestStandsAlone checks that the mock and its command import nothing else of this
// module, so that they can contradict the driver and be used without it.
func TestStandsAlone(t *testing.T) {
	const module = "github.com/stackitcloud/machine-controller-manager-provider-stackit"
	const own = module + "/test/iaasmock"
	read := map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		read[filepath.Dir(path)]++
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			inside := imported == own || strings.HasPrefix(imported, own+"/")
			if strings.HasPrefix(imported, module) && !inside {
				t.Errorf("%s imports %s", path, imported)
			}
			if imported == own && isSubpackage(path) {
				t.Errorf("%s imports the root, which imports it", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read["."] == 0 || read[filepath.Join("cmd", "iaasmock")] == 0 {
		t.Errorf("the package or its command was not read: %v", read)
	}
}
