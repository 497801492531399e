// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package recent has a map that drops an entry when nobody has asked for it during its
// lifetime.
//
// The driver keeps values that it could make again: the session of a Secret, the readers of
// a cluster, the warnings it gave. Nobody tells the driver that a Secret was rotated or a
// cluster deleted, so a plain map would grow for ever, and hold old keys.
//
// There is no goroutine: each call sweeps the map. It is made for hundreds of entries, and
// never has more than a thousand, because whoever can write a Secret could make a new key every
// second. (k8s.io/apimachinery's cache.Expiring ends an entry even if it is in use.)
package recent

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// most is how many entries a Map has: a new one takes the place of the one that nobody has
// asked for the longest.
const most = 1000

// Map drops an entry that nobody has asked for during its lifetime. It is safe for
// concurrent use.
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

// New returns an empty Map. An entry's lifetime begins anew with each call for its key.
func New[K comparable, V any](clock clock.PassiveClock, lifetime time.Duration) *Map[K, V] {
	return &Map[K, V]{clock: clock, lifetime: lifetime, entries: map[K]entry[V]{}}
}

// Get returns the value of the key. If there is none it keeps and returns what create
// makes. Other calls wait for create: it must be quick, and not use the Map.
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

// Lookup returns the value of the key, and whether there is one.
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

// Set keeps the value for the key, instead of any other.
func (m *Map[K, V]) Set(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	m.keep(key, value)
}

func (m *Map[K, V]) keep(key K, value V) {
	if _, known := m.entries[key]; !known && len(m.entries) >= most {
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
