// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page that says where to change what names files that exist, and what they declare.
func TestTheMapOfThePackageIsRight(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "\n//", "\n")), " ")
	for _, name := range regexp.MustCompile(`[\w./-]+\.(?:go|md|yaml)\b`).FindAllString(text, -1) {
		if _, err := os.Stat(resolve(name)); err != nil {
			t.Errorf("doc.go names %s: %v", name, err)
		}
	}
	claims := regexp.MustCompile(`((?:\w+, )*\w+) in ([\w./-]+\.go)`).FindAllStringSubmatch(text, -1)
	if len(claims) < 20 {
		t.Fatalf("%d claims are found in doc.go", len(claims))
	}
	for _, claim := range claims {
		declared := declaredIn(t, resolve(claim[2]))
		for _, name := range strings.Split(claim[1], ", ") {
			if !declared[name] {
				t.Errorf("doc.go says that %s is in %s, and it is not", name, claim[2])
			}
		}
	}
}

// resolve returns the path of a file that a page names by its place in the package or the repository.
func resolve(name string) string {
	if _, err := os.Stat(name); err == nil {
		return name
	}
	return filepath.Join("..", "..", name)
}

// declaredIn returns the names that a file declares at its top level, methods included.
func declaredIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			declared[function.Name.Name] = true
			continue
		}
		for _, spec := range decl.(*ast.GenDecl).Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				declared[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					declared[name.Name] = true
				}
			}
		}
	}
	return declared
}
