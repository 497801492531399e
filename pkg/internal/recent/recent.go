// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package recent provides a map whose entries expire after a period without access: the session of a
// Secret, the readers of a cluster. The driver does not learn that a Secret was rotated or a cluster
// deleted, so a plain map would grow without limit, and keep old keys. There is no goroutine: each
// call sweeps the map. (k8s.io/apimachinery's cache.Expiring expires an entry even if it is in use.)
package recent

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Map is a map whose entries expire after a period without access. It is safe for concurrent use, and
// meant for hundreds of entries.
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
	value, ok := m.lookup(key)
	if !ok {
		value = create()
		m.entries[key] = entry[V]{value, m.clock.Now()}
	}
	return value
}

// Lookup returns the value of the key, and reports whether there is one.
func (m *Map[K, V]) Lookup(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lookup(key)
}

// Set stores the value of the key, in place of any earlier value.
func (m *Map[K, V]) Set(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lookup(key)
	m.entries[key] = entry[V]{value, m.clock.Now()}
}

func (m *Map[K, V]) lookup(key K) (V, bool) {
	maps.DeleteFunc(m.entries, func(_ K, e entry[V]) bool { return m.clock.Since(e.asked) > m.lifetime })
	found, ok := m.entries[key]
	if ok {
		m.entries[key] = entry[V]{found.value, m.clock.Now()}
	}
	return found.value, ok
}
