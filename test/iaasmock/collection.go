// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// collection keeps things by ID in the order they came. Adding, finding and
// removing take the same time however many there are.
type collection[T any] struct {
	slotOf map[string]int
	// slots are in order; those of removed things stay as holes until there are
	// more holes than things.
	slots []slot[T]
}

type slot[T any] struct {
	id   string // empty in a hole
	item T
}

// minCompactSlots are never worth closing the holes in.
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

// closeHoles gives the memory of the holes back.
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

// each goes through the items in order. Whoever removes any meanwhile wants all.
func (c *collection[T]) each() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, s := range c.slots {
			if s.id != "" && !yield(s.item) {
				return
			}
		}
	}
}

// ids goes through the IDs in order.
func (c *collection[T]) ids() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range c.slots {
			if s.id != "" && !yield(s.id) {
				return
			}
		}
	}
}

// all returns the items in order; the slice is the caller's.
func (c *collection[T]) all() []T {
	items := make([]T, 0, c.count())
	for item := range c.each() {
		items = append(items, item)
	}
	return items
}

// catalogueResources is what the catalogue has brought and calls change since.
type catalogueResources struct {
	images         collection[*Image]
	securityGroups collection[*SecurityGroup]
	keypairs       collection[*Keypair]
	affinityGroups collection[*AffinityGroup]
	snapshots      collection[*Snapshot]
	// deletingNetworks are the networks that are being deleted.
	deletingNetworks map[string]*network
	// uploads are the images by the secrets in their uploadUrls.
	uploads map[string]*Image
}

func newCatalogueResources() catalogueResources {
	return catalogueResources{
		images:           newCollection[*Image](),
		securityGroups:   newCollection[*SecurityGroup](),
		keypairs:         newCollection[*Keypair](),
		affinityGroups:   newCollection[*AffinityGroup](),
		snapshots:        newCollection[*Snapshot](),
		deletingNetworks: map[string]*network{},
		uploads:          map[string]*Image{},
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
		group.Rules = slices.Clone(group.Rules)
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

// covers says whether something of this project and region is in the request's.
func (r *request) covers(project, region string) bool {
	return project == r.project() && region == r.region()
}

// find returns the first item that fits.
func find[T any](items []T, fits func(T) bool) (T, bool) {
	if i := slices.IndexFunc(items, fits); i >= 0 {
		return items[i], true
	}
	var none T
	return none, false
}

// listed lists what show says the request may see and label_selector picks.
func listed[T any](c *Cloud, r *request, from *collection[T], show func(T, time.Time) (view any, itsLabels map[string]string, visible bool)) (result any, err *apiError) {
	c.locked(func(now time.Time) {
		result, err = listCatalogue(r, from.all(), func(item T) (any, map[string]string, bool) { return show(item, now) })
	})
	return result, err
}

// listCatalogue is listed for what nothing changes.
func listCatalogue[T any](r *request, all []T, show func(T) (view any, itsLabels map[string]string, visible bool)) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, item := range all {
		view, itsLabels, visible := show(item)
		if visible && selector.Matches(labels.Set(itsLabels)) {
			views = append(views, view)
		}
	}
	return items(views), nil
}
