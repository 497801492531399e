// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package recent provides a map whose entries expire after a period without access.
//
// The driver caches values that it can recreate: the session of a Secret, the readers of a
// cluster, the warnings it gave. It does not learn that a Secret was rotated or a cluster deleted,
// so a plain map would grow without limit, and keep old keys.
//
// There is no goroutine: each call sweeps the map. A map is meant for hundreds of entries, and
// limited to a thousand, because a user who can write Secrets could create a new key every second.
// (k8s.io/apimachinery's cache.Expiring expires an entry even if it is in use.)
package recent

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxEntries limits the entries of a Map: a new entry replaces the least recently used one.
const maxEntries = 1000

// Map is a map of at most 1,000 entries, which expire after a period without access. A new entry
// beyond that replaces the least recently used one. A Map is safe for concurrent use.
type Map[K comparable, V any] struct {
	clock    clock.PassiveClock
	lifetime time.Duration

	mu      sync.Mutex
	entries map[K]entry[V]
}

type entry[V any] struct {
	value V
	asked time.Time
}

// New returns an empty Map whose entries expire lifetime after their last use.
func New[K comparable, V any](clock clock.PassiveClock, lifetime time.Duration) *Map[K, V] {
	return &Map[K, V]{clock: clock, lifetime: lifetime, entries: map[K]entry[V]{}}
}

// Get returns the value of the key. If there is none, Get stores and returns the result of create.
// Other calls wait for create, so it must be quick and must not use the Map.
func (m *Map[K, V]) Get(key K, create func() V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	found, ok := m.entries[key]
	if !ok {
		found.value = create()
	}
	m.keep(key, found.value)
	return found.value
}

// Lookup returns the value of the key, and reports whether there is one.
func (m *Map[K, V]) Lookup(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	found, ok := m.entries[key]
	if ok {
		m.keep(key, found.value)
	}
	return found.value, ok
}

// Set stores the value of the key, in place of any earlier value.
func (m *Map[K, V]) Set(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	m.keep(key, value)
}

func (m *Map[K, V]) keep(key K, value V) {
	if _, known := m.entries[key]; !known && len(m.entries) >= maxEntries {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(m.entries)), func(a, b K) int {
			return m.entries[a].asked.Compare(m.entries[b].asked)
		})
		delete(m.entries, oldest)
	}
	m.entries[key] = entry[V]{value, m.clock.Now()}
}

func (m *Map[K, V]) sweep() {
	maps.DeleteFunc(m.entries, func(_ K, e entry[V]) bool { return m.clock.Since(e.asked) > m.lifetime })
}
