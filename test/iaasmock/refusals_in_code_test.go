// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// refused is a statement in the code that makes a 4xx.
type refused struct {
	position, function string
	status             int
	message            string // with "…" for values of the call
	source             string
	unconfirmed        bool
}

func findRefusals(t *testing.T) []refused {
	t.Helper()
	var found []refused
	for _, folder := range []string{".", "internal/token"} {
		found = append(found, readCode(t, folder).refusals()...)
	}
	if len(found) < 50 {
		t.Fatalf("only %d refusals found", len(found))
	}
	return found
}

// code is a package: its files, and its functions that make refusals or pass them on.
type code struct {
	positions *token.FileSet
	files     []*ast.File
	// makers are functions that only return a refusal, handers pass a parameter to
	// unconfirmed.
	makers, handers map[string]*ast.FuncDecl
}

func readCode(t *testing.T, folder string) *code {
	t.Helper()
	c := &code{positions: token.NewFileSet(), makers: map[string]*ast.FuncDecl{}, handers: map[string]*ast.FuncDecl{"unconfirmed": nil}}
	paths, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "admin") || strings.HasPrefix(name, "console_") {
			continue
		}
		file, err := parser.ParseFile(c.positions, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, file)
	}
	for known := -1; known != len(c.makers); { // makers may use makers
		known = len(c.makers)
		c.eachFunction(func(_ *ast.File, f *ast.FuncDecl) {
			if result := onlyResult(f); result != nil && c.makesRefusal(result) {
				c.makers[f.Name.Name] = f
			}
			if c.handsOn(f) {
				c.handers[f.Name.Name] = f
			}
		})
	}
	return c
}

func (c *code) eachFunction(visit func(*ast.File, *ast.FuncDecl)) {
	for _, file := range c.files {
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Body != nil {
				visit(file, f)
			}
		}
	}
}

// onlyResult is what a function of one statement returns.
func onlyResult(f *ast.FuncDecl) ast.Expr {
	if len(f.Body.List) != 1 {
		return nil
	}
	if result, ok := f.Body.List[0].(*ast.ReturnStmt); ok && len(result.Results) == 1 {
		return result.Results[0]
	}
	return nil
}

// makesRefusal reports whether the node is an error in the API's form, a Refusal of the
// token endpoint, a plain HTTP error, or the call of a maker.
func (c *code) makesRefusal(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.UnaryExpr:
		return c.makesRefusal(n.X)
	case *ast.CompositeLit:
		name, _ := n.Type.(*ast.Ident)
		return name != nil && (name.Name == "apiError" || name.Name == "Refusal")
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(f.X, f.Sel) == "http Error" {
			return true
		}
		return c.makers[called(n)] != nil
	}
	return false
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// handsOn reports whether the function passes one of its parameters to unconfirmed.
func (c *code) handsOn(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && called(call) == "unconfirmed" {
			name, _ := call.Args[0].(*ast.Ident)
			found = found || name != nil && slices.Contains(parameters(f), name.Name)
		}
		return true
	})
	return found
}

func parameters(f *ast.FuncDecl) (names []string) {
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

func (c *code) refusals() (found []refused) {
	c.eachFunction(func(file *ast.File, f *ast.FuncDecl) {
		if c.makers[f.Name.Name] == f { // its calls count
			return
		}
		var stack []ast.Node
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			stack = append(stack, n)
			if !c.makesRefusal(n) || len(stack) > 1 && c.makesRefusal(stack[len(stack)-2]) {
				return true
			}
			r := refused{position: c.positions.Position(n.Pos()).String(), function: f.Name.Name}
			r.status, r.message = c.answer(n, nil)
			r.unconfirmed = slices.ContainsFunc(stack, c.isHander)
			r.source = cmp.Or(c.sourceBeside(file, stack), c.sourceOfMaker(n))
			if r.status < 500 {
				found = append(found, r)
			}
			return true
		})
	})
	return found
}

func (c *code) isHander(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	_, known := c.handers[called(call)]
	return known
}

// sourceBeside returns the source in the comment above the innermost statement of the
// stack.
func (c *code) sourceBeside(file *ast.File, stack []ast.Node) string {
	line := func(p token.Pos) int { return c.positions.Position(p).Line }
	for _, n := range slices.Backward(stack) {
		statement, ok := n.(ast.Stmt)
		if !ok {
			continue
		}
		for _, comment := range file.Comments {
			if line(comment.End()) == line(statement.Pos())-1 {
				return sourceIn(comment)
			}
		}
		return ""
	}
	return ""
}

func (c *code) sourceOfMaker(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || c.makers[called(call)] == nil {
		return ""
	}
	maker := c.makers[called(call)]
	return cmp.Or(sourceIn(maker.Doc), c.sourceOfMaker(onlyResult(maker)))
}

func sourceIn(comment *ast.CommentGroup) string {
	_, source, _ := strings.Cut(comment.Text(), "Source: ")
	return strings.TrimSpace(source)
}

var (
	statusCodes = map[string]int{
		"StatusBadRequest": 400, "StatusUnauthorized": 401, "StatusForbidden": 403, "StatusNotFound": 404, "StatusMethodNotAllowed": 405,
		"StatusConflict": 409, "StatusRequestEntityTooLarge": 413, "StatusTooManyRequests": 429, "StatusInternalServerError": 500,
	}
	verb = regexp.MustCompile(`%[a-z]`)
)

// answer returns the status and message of a refusal as far as the code shows them; known
// are the arguments of the makers on the way. Status 0 means unknown.
func (c *code) answer(n ast.Node, known map[string]string) (status int, message string) {
	if pointer, ok := n.(*ast.UnaryExpr); ok { // of package token
		literal, _ := pointer.X.(*ast.CompositeLit)
		return statusIn(literal.Elts), ""
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return 0, ""
	}
	text := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if value, err := strconv.Unquote(e.Value); err == nil {
				return value
			}
		case *ast.Ident:
			return cmp.Or(known[e.Name], "…")
		}
		return "…"
	}
	if called(call) != "newError" {
		maker := c.makers[called(call)]
		if maker == nil {
			return 0, ""
		}
		given := map[string]string{}
		for i, name := range parameters(maker) {
			if i < len(call.Args) {
				given[name] = text(call.Args[i])
			}
		}
		return c.answer(onlyResult(maker), given)
	}
	args := call.Args[2:]
	return statusIn(call.Args), verb.ReplaceAllStringFunc(text(call.Args[1]), func(string) string {
		if len(args) == 0 || call.Ellipsis.IsValid() {
			return "…"
		}
		first := args[0]
		args = args[1:]
		return text(first)
	})
}

// statusIn returns the status of the first argument, if that is a constant of net/http.
func statusIn(args []ast.Expr) int {
	if code, ok := args[0].(*ast.SelectorExpr); ok {
		return statusCodes[code.Sel.Name]
	}
	return 0
}
