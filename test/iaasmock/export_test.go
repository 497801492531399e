// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"reflect"
	"runtime"
	"strings"
)

// Operations returns all operations of the mock.
func Operations() []string {
	var operations []string
	for _, r := range routes {
		operations = append(operations, r.operation)
	}
	return operations
}

// Paths returns the paths of the operations, as the API document writes them.
func Paths() map[string]string {
	paths := map[string]string{}
	for _, r := range routes {
		paths[r.operation] = r.path
	}
	return paths
}

// Handlers returns the names of the operations' methods.
func Handlers() map[string]string {
	handlers := map[string]string{}
	for _, r := range routes {
		name := runtime.FuncForPC(reflect.ValueOf(r.handle).Pointer()).Name()
		handlers[r.operation] = name[strings.LastIndex(name, ".")+1:]
	}
	return handlers
}
