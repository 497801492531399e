// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// garbage is how many bytes of it there may be until they are collected, within the
	// bounds below. Go's own rule, as much as is in use, lets the lists of a thousand
	// servers, garbage once they are read, take twice the memory. A share of what is in
	// use that is small enough for those would collect all the time where that is
	// little, and scan the stacks of thousands of MCM's workers each time.
	garbage = 12 << 20
	// leastGCPercent and mostGCPercent bound garbage as a percentage of what is in use:
	// collecting must not take all the time, and Go's own 100 is enough.
	leastGCPercent, mostGCPercent = 25, 100

	// idleAfter is for how many seconds in a row the process must allocate less than
	// idleAllocs bytes in each until it is idle.
	idleAfter  = 10
	idleAllocs = 1 << 20
	// trimAbove is from how many bytes of files on it is worth while to drop them. Those
	// in use come back with the next few page faults.
	trimAbove = 8 << 20
)

// boundMemory keeps the process small as long as it lives: after each collection it
// sets how much garbage there may be until the next, and while the process is idle it
// gives back what that had for its work: free memory, and the resident pages of its
// program, most of which only its start needs. The latter stay in the page cache: it
// is the resident set that shrinks, not what the container is charged with.
func boundMemory() {
	afterEachCollection(boundGarbage)
	go func() {
		var idle idleness
		var once sync.Once
		for range time.Tick(time.Second) {
			if err := giveBack(idle.lasts(allocated())); err != nil {
				once.Do(func() { klog.V(1).InfoS("The program's pages stay resident", "reason", err) })
			}
		}
	}()
}

// afterEachCollection runs f soon after each garbage collection.
func afterEachCollection(f func()) {
	// A small object without a pointer could share its place with others.
	type sentinel struct{ _ *int }
	runtime.AddCleanup(&sentinel{}, func(f func()) {
		f()
		afterEachCollection(f)
	}, f)
}

// boundGarbage sets gcPercent, unless GOGC is set.
func boundGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(inUse()))
	}
}

// gcPercent returns how much may be allocated until the next collection, as a
// percentage of so many bytes in use.
func gcPercent(inUse uint64) int {
	return int(min(max(100*garbage/max(inUse, 1), leastGCPercent), mostGCPercent))
}

// inUse returns how many bytes the last collection left, stacks included.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

// allocated returns the bytes of all there was on the heap since the start.
func allocated() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// idleness tells for how long a process has been idle.
type idleness struct {
	allocated uint64
	seconds   int
}

// lasts is called every second with the bytes that the process has allocated so far.
// It returns in how many seconds in a row these were few.
func (i *idleness) lasts(allocated uint64) int {
	i.seconds++
	if allocated-i.allocated >= idleAllocs {
		i.seconds = 0
	}
	i.allocated = allocated
	return i.seconds
}

// giveBack is called every second with how many the process has been idle: it returns
// free memory once, and looks at the program's pages again and again, since a little
// work makes some of them resident. It returns why these could not be dropped.
func giveBack(idle int) error {
	if idle == idleAfter {
		debug.FreeOSMemory()
	}
	if idle == 0 || idle%idleAfter != 0 {
		return nil
	}
	return trimProgram(trimAbove)
}
