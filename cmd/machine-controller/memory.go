// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/klog/v2"
)

const (
	// garbage is how many bytes of it there may be until they are collected, as long as
	// gcPercent is within its bounds. Go's own rule, as much as is in use, lets the
	// lists of a thousand servers, garbage once they are read, take twice the memory. A
	// constant share small enough for those would collect all the time where little is
	// in use, and scan the stacks of thousands of MCM's workers each time.
	garbage = 16 << 20
	// leastGCPercent and mostGCPercent bound garbage as a percentage of what is in use,
	// stacks included: collecting must not take all the time, and Go's own 100 is
	// enough.
	leastGCPercent, mostGCPercent = 25, 100

	// idleAfter is for how many seconds in a row there must be little to do until the
	// process is idle: in each it allocates less than idleAllocs bytes.
	idleAfter  = 10
	idleAllocs = 1 << 20
	// trimAbove is from how many bytes of files on it is worth while to drop them. Those
	// in use come back with the next few page faults.
	trimAbove = 8 << 20
)

// boundMemory keeps the process small as long as it lives. Where GOGC is set, that
// decides how much garbage there may be. Each time the process becomes idle, it gives
// back what it had for its work: free memory and the resident pages of its program,
// most of which only its start needs. The latter stay in the page cache: it is the
// resident set that shrinks, not what the container is charged with.
func boundMemory() {
	go func() {
		var idle idleness
		for range time.Tick(time.Second) {
			now := readUse()
			setGCPercent(now.live + now.stacks)
			if idle.begins(now.allocated) {
				giveBack()
			}
		}
	}()
}

// setGCPercent is called with how many bytes are in use.
func setGCPercent(inUse uint64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(inUse))
	}
}

// gcPercent returns how much may be allocated until the next collection, as a
// percentage of so many bytes in use.
func gcPercent(inUse uint64) int {
	if inUse == 0 {
		return mostGCPercent // nothing was collected yet
	}
	return int(min(max(100*garbage/inUse, leastGCPercent), mostGCPercent))
}

// idleness tells when a process becomes idle.
type idleness struct {
	allocated uint64
	seconds   int
}

// begins is called every second with all bytes that the process has allocated so far.
// It says whether the process has become idle now.
func (i *idleness) begins(allocated uint64) bool {
	if allocated-i.allocated >= idleAllocs {
		i.seconds = 0
	} else if i.seconds <= idleAfter {
		i.seconds++
	}
	i.allocated = allocated
	return i.seconds == idleAfter
}

// use is what the process has in memory, in bytes.
type use struct {
	// live and stacks are what the last collection left and scanned.
	live, stacks uint64
	// allocated is all there was of heap since the start.
	allocated uint64
}

func readUse() use {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return use{live: samples[0].Value.Uint64(), stacks: samples[1].Value.Uint64(), allocated: samples[2].Value.Uint64()}
}

func giveBack() {
	debug.FreeOSMemory()
	if err := trimProgram(trimAbove); err != nil {
		klog.V(1).InfoS("The program's pages stay resident", "reason", err)
	}
}
