// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package rooms_test checks how the files of a package depend on each other. How packages do is
// depguard's, in .golangci.yml.
package rooms_test

import (
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// No two files of a package need each other, directly or by way of others: whoever reads a file
// needs to know only what is below it. Test files, files for other systems and other modules are
// not looked at.
func TestNoCirclesOfFiles(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Dir:  filepath.Join("..", ".."),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, "./...")
	if err != nil || len(loaded) < 50 || packages.PrintErrors(loaded) > 0 {
		t.Fatalf("%d packages loaded, %v", len(loaded), err)
	}
	for _, p := range loaded {
		uses := usesOf(p)
		for file, below := range uses {
			for other, names := range below {
				if reaches(uses, other, file, map[string]bool{}) {
					t.Errorf("%s: %s uses %s of %s, which in turn needs %[2]s", p.PkgPath, file, strings.Join(slices.Sorted(maps.Keys(names)), ", "), other)
				}
			}
		}
	}
}

// usesOf returns, for each file, the other files of its package and what it uses of them.
func usesOf(p *packages.Package) map[string]map[string]map[string]bool {
	uses := map[string]map[string]map[string]bool{}
	for name, object := range p.TypesInfo.Uses {
		switch generic := object.(type) {
		case *types.Var:
			object = generic.Origin()
		case *types.Func:
			object = generic.Origin()
		}
		file, other := p.Fset.Position(name.Pos()).Filename, p.Fset.Position(object.Pos()).Filename
		if object.Pkg() != p.Types || file == other {
			continue
		}
		file, other = filepath.Base(file), filepath.Base(other)
		if uses[file] == nil {
			uses[file] = map[string]map[string]bool{}
		}
		if uses[file][other] == nil {
			uses[file][other] = map[string]bool{}
		}
		uses[file][other][object.Name()] = true
	}
	return uses
}

func reaches(uses map[string]map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for next := range uses[from] {
		if !seen[next] && reaches(uses, next, to, seen) {
			return true
		}
	}
	return false
}
