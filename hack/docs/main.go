// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command docs prints the sentences that this project says to its readers, so that they
// can be read in one go: each package's comment, the first sentence of each exported
// identifier, and the texts of errors, log lines and flags. Its arguments are folders;
// those with nothing but tests are left out.
//
//	go run ./hack/docs pkg/provider pkg/spi
package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	for _, folder := range os.Args[1:] {
		if err := tell(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// tell prints the sentences of the package in the folder.
func tell(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s has no Go files", folder)
	}
	if len(files) == 0 {
		return nil
	}
	texts := texts(files) // NewFromFiles takes the bodies away
	pkg, err := doc.NewFromFiles(set, files, folder)
	if err != nil {
		return err
	}
	fmt.Printf("# %s\n\n%s\n", folder, pkg.Doc)
	for _, sentence := range append(sentences(pkg), texts...) {
		fmt.Println("-", sentence)
	}
	return nil
}

// sentences returns the first one of each exported identifier.
func sentences(pkg *doc.Package) []string {
	var all []string
	note := func(name, comment string) { all = append(all, name+": "+pkg.Synopsis(comment)) }
	values := func(groups []*doc.Value) {
		for _, group := range groups {
			note(strings.Join(group.Names, ", "), group.Doc)
		}
	}
	funcs := func(funcs []*doc.Func) {
		for _, f := range funcs {
			note(f.Name, f.Doc)
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs)
	for _, t := range pkg.Types {
		note(t.Name, t.Doc)
		values(t.Consts)
		values(t.Vars)
		funcs(t.Funcs)
		funcs(t.Methods)
	}
	return all
}

// texts returns the string literals of several words that are handed to functions.
func texts(files []*ast.File) []string {
	var all []string
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, isCall := node.(*ast.CallExpr)
			if !isCall {
				return true
			}
			for _, argument := range call.Args {
				literal, isLiteral := argument.(*ast.BasicLit)
				if !isLiteral || literal.Kind != token.STRING {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && strings.Count(text, " ") > 1 {
					all = append(all, strconv.Quote(text))
				}
			}
			return true
		})
	}
	return all
}
