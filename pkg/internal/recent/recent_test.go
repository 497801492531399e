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

func newMap() *Map[string, int] { return New[string, int](clock.RealClock{}, lifetime) }

func TestAnEntryLivesAsLongAsSomebodyAsksForIt(t *testing.T) {
	for name, ask := range map[string]func(*Map[string, int]) int{
		"Get": func(m *Map[string, int]) int {
			return m.Get("a", func() int { return 0 })
		},
		"Lookup": func(m *Map[string, int]) int { value, _ := m.Lookup("a"); return value },
		"Set": func(m *Map[string, int]) int {
			value, ok := m.Lookup("a")
			if ok {
				m.Set("a", value)
			}
			return value
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMap()
				m.Set("a", 1)
				for range 3 {
					<-time.After(lifetime)
					if got := ask(m); got != 1 {
						t.Fatalf("after its lifetime without a pause it is %d, want 1", got)
					}
				}
				<-time.After(lifetime + 1)
				if _, ok := m.Lookup("a"); ok {
					t.Error("nobody asked for it during its lifetime, and it is still there")
				}
			})
		})
	}
}

func TestOtherEntriesAreSweptByEveryCall(t *testing.T) {
	for name, call := range map[string]func(*Map[string, int]){
		"Get":    func(m *Map[string, int]) { m.Get("b", func() int { return 2 }) },
		"Lookup": func(m *Map[string, int]) { m.Lookup("b") },
		"Set":    func(m *Map[string, int]) { m.Set("b", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMap()
				m.Set("a", 1)
				<-time.After(lifetime + 1)
				call(m)
				if _, ok := m.entries["a"]; ok {
					t.Error("an idle entry stays in memory")
				}
			})
		})
	}
}

func TestConcurrentCallersShareOneValue(t *testing.T) {
	m := newMap()
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

func TestANewEntryTakesThePlaceOfTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New[int, int](clock.RealClock{}, lifetime)
		for key := range most {
			m.Set(key, key)
			<-time.After(time.Second)
		}
		m.Lookup(0)
		for key := range 10 {
			m.Set(-1-key, 0)
		}
		for key, want := range map[int]bool{0: true, 1: false, 10: false, 11: true, most - 1: true, -1: true, -10: true} {
			if _, got := m.Lookup(key); got != want {
				t.Errorf("entry %d is there: %t, want %t", key, got, want)
			}
		}
		if len(m.entries) != most {
			t.Errorf("%d entries, want %d", len(m.entries), most)
		}
	})
}
