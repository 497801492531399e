// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"go/ast"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// operations returns the operations that use each function, directly or through others.
func (c *code) operations() map[string][]string {
	uses := map[string]map[string]bool{}
	c.eachFunction(func(_ *ast.File, f *ast.FuncDecl) {
		names := map[string]bool{}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				names[name.Name] = true
			}
			return true
		})
		uses[f.Name.Name] = names
	})
	found := map[string][]string{}
	for operation, handler := range iaasmock.Handlers() {
		reached := map[string]bool{}
		var reach func(string)
		reach = func(name string) {
			if _, known := uses[name]; !known || reached[name] {
				return
			}
			reached[name] = true
			for used := range uses[name] {
				reach(used)
			}
		}
		reach(handler)
		for name := range reached {
			found[name] = append(found[name], operation)
		}
	}
	return found
}
