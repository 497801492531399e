// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCollectionAgainstAModel does the same at random to a collection and to a
// plain list.
func TestCollectionAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var items collection[string]
	var model []string
	for range 5000 {
		id := fmt.Sprint(random.IntN(300))
		if random.IntN(5) < 2 {
			items.put(id, id)
			if !slices.Contains(model, id) {
				model = append(model, id)
			}
		} else {
			items.remove(id)
			model = slices.DeleteFunc(model, func(other string) bool { return other == id })
		}
		_, found := items.get(id)
		if found != slices.Contains(model, id) || items.count() != len(model) {
			t.Fatalf("%s is found: %t; %d items, want %d", id, found, items.count(), len(model))
		}
	}
	if got := items.all(); !slices.Equal(got, model) {
		t.Errorf("holds %v\nwant  %v", got, model)
	}
	for _, id := range model {
		items.remove(id)
	}
	if len(items.slots) > minCompactSlots || len(items.all()) > 0 {
		t.Errorf("empty, it has %d slots and %v", len(items.slots), items.all())
	}
}
