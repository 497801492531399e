// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"iter"
)

// collection keeps items by ID in the order they were added. Adding, finding and removing
// take the same time however many there are.
type collection[T any] struct {
	slotOf map[string]int
	// slots are in order; those of removed items stay as holes until there are more holes
	// than items.
	slots []slot[T]
}

type slot[T any] struct {
	id   string // empty in a hole
	item T
}

// minCompactSlots is the number of slots up to which holes are kept.
const minCompactSlots = 32

func (c *collection[T]) put(id string, item T) {
	if i, known := c.slotOf[id]; known {
		c.slots[i].item = item
		return
	}
	if c.slotOf == nil {
		c.slotOf = map[string]int{}
	}
	c.slotOf[id] = len(c.slots)
	c.slots = append(c.slots, slot[T]{id: id, item: item})
}

func (c *collection[T]) get(id string) (T, bool) {
	if i, known := c.slotOf[id]; known {
		return c.slots[i].item, true
	}
	var none T
	return none, false
}

func (c *collection[T]) remove(id string) {
	i, known := c.slotOf[id]
	if !known {
		return
	}
	delete(c.slotOf, id)
	c.slots[i] = slot[T]{}
	if len(c.slots) > max(minCompactSlots, 2*len(c.slotOf)) {
		c.closeHoles()
	}
}

// closeHoles frees the memory of the holes.
func (c *collection[T]) closeHoles() {
	kept := make([]slot[T], 0, len(c.slotOf))
	slotOf := make(map[string]int, len(c.slotOf))
	for _, s := range c.slots {
		if s.id != "" {
			slotOf[s.id] = len(kept)
			kept = append(kept, s)
		}
	}
	c.slots, c.slotOf = kept, slotOf
}

func (c *collection[T]) count() int { return len(c.slotOf) }

// each iterates over the items in order. A loop that removes items must use all instead.
func (c *collection[T]) each() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, s := range c.slots {
			if s.id != "" && !yield(s.item) {
				return
			}
		}
	}
}

// all returns the items in order, in a new slice.
func (c *collection[T]) all() []T {
	items := make([]T, 0, c.count())
	for item := range c.each() {
		items = append(items, item)
	}
	return items
}
