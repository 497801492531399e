// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "slices"

// collection keeps things by ID in the order they came.
type collection[T any] struct {
	byID  map[string]T
	order []string
}

func newCollection[T any]() collection[T] {
	return collection[T]{byID: map[string]T{}}
}

func (c *collection[T]) put(id string, item T) {
	if _, known := c.byID[id]; !known {
		c.order = append(c.order, id)
	}
	c.byID[id] = item
}

func (c *collection[T]) get(id string) (T, bool) {
	item, ok := c.byID[id]
	return item, ok
}

func (c *collection[T]) remove(id string) {
	if _, known := c.byID[id]; !known {
		return
	}
	delete(c.byID, id)
	i := slices.Index(c.order, id)
	c.order = slices.Delete(c.order, i, i+1)
}

// all returns the items in order; the slice is the caller's.
func (c *collection[T]) all() []T {
	items := make([]T, 0, len(c.order))
	for _, id := range c.order {
		items = append(items, c.byID[id])
	}
	return items
}
