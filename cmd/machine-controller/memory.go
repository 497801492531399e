// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// gcPercent is how much the heap may grow between two collections, as a percentage
	// of what is in use. Go's own 100 lets the lists of a thousand servers, garbage once
	// they are read, take twice the memory.
	gcPercent = 25
	// trimPeriod is how often the resident pages of the program are looked at.
	trimPeriod = 10 * time.Second
	// trimAbove is from how many bytes of files on it is worth while to drop them. Those
	// in use come back with the next few page faults.
	trimAbove = 8 << 20
)

// boundMemory sets gcPercent, unless GOGC is set, and keeps the resident set small as
// long as the process lives: most pages of the program are needed for its start only.
// They stay in the page cache: it is the resident set that shrinks, not what the
// container is charged with.
func boundMemory() {
	setGCPercent()
	go func() {
		var once sync.Once
		for range time.Tick(trimPeriod) {
			if err := trimProgram(trimAbove); err != nil {
				once.Do(func() { klog.V(1).InfoS("The program's pages stay resident", "reason", err) })
			}
		}
	}()
}

func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
