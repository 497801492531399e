// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

func TestGCPercent(t *testing.T) {
	for inUse, want := range map[uint64]int{
		0: 100, 1: 100, garbage: 100, 2 * garbage: 50, 4 * garbage: 25, 40 * garbage: 25,
	} {
		if got := gcPercent(inUse); got != want {
			t.Errorf("with %d bytes in use it is %d, want %d", inUse, got, want)
		}
	}
}

func TestGarbageIsBoundedByWhatIsInUse(t *testing.T) {
	const goes = 73
	before := debug.SetGCPercent(goes)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for _, row := range []struct {
		name, gogc        string
		heap, stack, want int
	}{
		{"little", "", 0, 0, mostGCPercent},
		{"heap", "", 4 * garbage, 0, leastGCPercent},
		{"stacks", "", 0, 4 * garbage, leastGCPercent},
		{"GOGC wins", "off", 4 * garbage, 0, goes},
	} {
		t.Setenv("GOGC", row.gogc)
		debug.SetGCPercent(goes)
		held, release := make([]byte, row.heap), holdStacks(row.stack)
		runtime.GC()
		boundGarbage()
		if got := debug.SetGCPercent(goes); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
		runtime.KeepAlive(held)
		release()
	}
}

// holdStacks makes goroutines with stacks of so many bytes in all.
func holdStacks(bytes int) (release func()) {
	const frame = 64 << 10
	var ready, gone sync.WaitGroup
	done := make(chan struct{})
	for range bytes / frame {
		ready.Add(1)
		gone.Go(func() {
			var stack [frame]byte
			ready.Done()
			<-done
			for i := range stack {
				stack[i]++
			}
		})
	}
	ready.Wait()
	return func() {
		close(done)
		gone.Wait()
	}
}

func TestAfterEachCollection(t *testing.T) {
	collected := make(chan struct{})
	afterEachCollection(func() {
		select {
		case collected <- struct{}{}:
		case <-t.Context().Done():
		}
	})
	for seen := 0; seen < 3; {
		runtime.GC() // one that is still under way when f runs may be of no use
		select {
		case <-collected:
			seen++
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestIdleness(t *testing.T) {
	const much, little = idleAllocs, idleAllocs - 1
	var idle idleness
	var allocated uint64
	for second, row := range []struct {
		bytes uint64
		want  int
	}{{much, 0}, {little, 1}, {0, 2}, {little, 3}, {much, 0}, {10 * much, 0}, {little, 1}, {0, 2}} {
		allocated += row.bytes
		if got := idle.lasts(allocated); got != row.want {
			t.Errorf("second %d: idle for %d, want %d", second, got, row.want)
		}
	}
}

func TestAllocated(t *testing.T) {
	before := allocated()
	held := make([]byte, garbage)
	after := allocated()
	runtime.KeepAlive(held)
	if after-before < garbage || before == 0 {
		t.Errorf("%d bytes are allocated, %d before the last %d", after, before, garbage)
	}
}
