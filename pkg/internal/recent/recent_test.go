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

func TestAnEntryLivesAsLongAsSomebodyAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New[string, int](clock.RealClock{}, lifetime)
		m.Set("a", 1)
		for range 3 {
			<-time.After(lifetime)
			if _, ok := m.Lookup("a"); !ok {
				t.Fatal("it is gone after its lifetime without a pause")
			}
			<-time.After(lifetime)
			if m.Get("a", func() int { return 2 }) != 1 {
				t.Fatal("it is made anew after its lifetime without a pause")
			}
		}
		<-time.After(lifetime + 1)
		if _, ok := m.Lookup("a"); ok {
			t.Error("nobody asked for it during its lifetime, and it is still there")
		}
	})
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
