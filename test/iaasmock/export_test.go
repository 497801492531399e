// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"slices"
)

// Operations returns all operations of the mock.
func Operations() []string {
	return append(slices.Sorted(maps.Keys(handlers)), "GetProject", "Token")
}
