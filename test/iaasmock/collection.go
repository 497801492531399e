// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
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

func newCollection[T any]() collection[T] {
	return collection[T]{slotOf: map[string]int{}}
}

func (c *collection[T]) put(id string, item T) {
	if i, known := c.slotOf[id]; known {
		c.slots[i].item = item
		return
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

// catalogueResources are the catalogue's resources that no call changes. The rest of
// them are fields of Cloud and projectResources.
type catalogueResources struct {
	images         collection[*Image]
	securityGroups collection[*SecurityGroup]
	keypairs       collection[*Keypair]
	affinityGroups collection[*AffinityGroup]
	snapshots      collection[*Snapshot]
}

func newCatalogueResources() catalogueResources {
	return catalogueResources{
		images:         newCollection[*Image](),
		securityGroups: newCollection[*SecurityGroup](),
		keypairs:       newCollection[*Keypair](),
		affinityGroups: newCollection[*AffinityGroup](),
		snapshots:      newCollection[*Snapshot](),
	}
}

func (c *Cloud) loadImagesAndGroups() {
	now := c.clock.Now()
	for _, image := range c.catalogue.Images {
		if image.Status == "" {
			image.Status = ImageAvailable
		}
		image.CreatedAt, image.UpdatedAt = now, now
		c.images.put(image.ID, &image)
	}
	for _, group := range c.catalogue.SecurityGroups {
		group.CreatedAt, group.UpdatedAt = now, now
		c.securityGroups.put(group.ID, &group)
	}
	for _, keypair := range c.catalogue.Keypairs {
		keypair.CreatedAt, keypair.UpdatedAt = now, now
		c.keypairs.put(keypair.Name, &keypair)
	}
	for _, group := range c.catalogue.AffinityGroups {
		c.affinityGroups.put(group.ID, &group)
	}
	for _, snapshot := range c.catalogue.Snapshots {
		snapshot.CreatedAt, snapshot.UpdatedAt = now, now
		c.snapshots.put(snapshot.ID, &snapshot)
	}
}

// covers reports whether the request is for this project and region.
func (r *request) covers(project, region string) bool {
	return project == r.project() && region == r.region()
}

// find returns the first item for which fits is true.
func find[T any](items []T, fits func(T) bool) (T, bool) {
	if i := slices.IndexFunc(items, fits); i >= 0 {
		return items[i], true
	}
	var none T
	return none, false
}

// listed answers with the items that are visible to the request and match label_selector.
func listed[T any](c *Cloud, r *request, from *collection[T], show func(T, time.Time) (view any, itsLabels map[string]string, visible bool)) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []any{}
	c.locked(func(now time.Time) {
		for item := range from.each() {
			view, itsLabels, visible := show(item, now)
			if visible && selector.Matches(labels.Set(itsLabels)) {
				views = append(views, view)
			}
		}
	})
	return items(views), nil
}
