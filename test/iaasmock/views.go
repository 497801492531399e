// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "maps"

// list is the form of the API's lists.
type list struct {
	Items any `json:"items"`
}

func items[T any](views []T) list { return list{Items: orEmpty(views)} }

// orEmpty returns an empty list for nil, which JSON would show as null.
func orEmpty[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func orEmptyMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
