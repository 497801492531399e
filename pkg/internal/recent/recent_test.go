// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package recent

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

const lifetime = time.Hour

// Every call sweeps the other entries.
func TestAnEntryLivesAsLongAsSomebodyAsksForIt(t *testing.T) {
	for name, ask := range map[string]func(m *Map[string, int], key string) int{
		"Get":    func(m *Map[string, int], key string) int { return m.Get(key, func() int { return 1 }) },
		"Lookup": func(m *Map[string, int], key string) int { value, _ := m.Lookup(key); return value },
		"Set":    func(m *Map[string, int], key string) int { m.Set(key, 1); return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New[string, int](clock.RealClock{}, lifetime)
				m.Set("a", 1)
				for range 3 {
					<-time.After(lifetime)
					if _, ok := m.entries["a"]; !ok || ask(m, "a") != 1 {
						t.Fatal("it is gone after its lifetime without a pause")
					}
				}
				<-time.After(lifetime + 1)
				ask(m, "b")
				if _, ok := m.entries["a"]; ok {
					t.Error("nobody asked for it during its lifetime, and it is still there")
				}
			})
		})
	}
}

func TestConcurrentCallersShareOneValue(t *testing.T) {
	m := New[string, int](clock.RealClock{}, lifetime)
	made := 0
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if value := m.Get("a", func() int { made++; return made }); value != 1 {
				t.Errorf("got %d, want 1", value)
			}
		})
	}
	group.Wait()
}
