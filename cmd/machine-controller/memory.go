// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
)

const (
	// gcPercent is how much the heap may grow between two collections, as a percentage
	// of what is in use. Go's own 100 lets the lists of a thousand servers, garbage once
	// they are read, take twice the memory.
	gcPercent = 25
	// releasePeriod is how often the pages of the program are released. Those in use
	// are back at once and cost 50 page faults; what only the start or a burst of work
	// needed, 35 MiB of 38, stays out.
	releasePeriod = 10 * time.Second
)

// boundMemory sets gcPercent, unless GOGC is set, and releases the pages of the
// program from time to time, as long as the process lives.
func boundMemory() {
	setGCPercent()
	go func() {
		for range time.Tick(releasePeriod) {
			if err := releaseProgram(); err != nil {
				klog.V(2).InfoS("Keeping the program's pages", "reason", err)
				return
			}
		}
	}()
}

func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
