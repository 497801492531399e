// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

// Operations are all that the mock implements, for tests to go through.
func Operations() []string {
	var operations []string
	for _, r := range routes {
		operations = append(operations, r.operation)
	}
	return operations
}

// Paths are those of the operations, as the API document writes them.
func Paths() map[string]string {
	paths := map[string]string{}
	for _, r := range routes {
		paths[r.operation] = r.path
	}
	return paths
}
