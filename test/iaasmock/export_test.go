// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"slices"
)

// Operations returns the operations of the API document that the mock has.
func Operations() []string { return slices.Sorted(maps.Keys(handlers)) }
