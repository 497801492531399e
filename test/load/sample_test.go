// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// sample is what a process holds while it is at work.
type sample struct {
	heapKB, goroutines, files int
}

// sample is the least of several looks after the wait: the work itself comes and
// goes, what is never given back stays. The mock's own memory of calls is dropped
// before.
func (r *rig) sample(after time.Duration) sample {
	<-time.After(after - looks*pause)
	var least sample
	for look := range looks {
		<-time.After(pause)
		r.cloud.ResetCalls()
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		seen := sample{int(memory.HeapAlloc >> 10), runtime.NumGoroutine(), openFiles()}
		if look == 0 {
			least = seen
		}
		least = sample{min(least.heapKB, seen.heapKB), min(least.goroutines, seen.goroutines), min(least.files, seen.files)}
	}
	return least
}

const (
	looks = 10
	pause = 200 * time.Millisecond
)

// openFiles counts file descriptors, connections included; 0 where the system does
// not show them.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// within reports what has grown by more than the work's own ups and downs.
func (s sample) within(t *testing.T, before sample) {
	t.Helper()
	for _, row := range []struct {
		what           string
		before, now    int
		percent, spare int
	}{
		{"heap in KB", before.heapKB, s.heapKB, 20, 2048},
		{"goroutines", before.goroutines, s.goroutines, 30, 40},
		{"file descriptors", before.files, s.files, 30, 40},
	} {
		if limit := row.before*(100+row.percent)/100 + row.spare; row.now > limit {
			t.Errorf("%s: %d after a third of the time, %d at the end", row.what, row.before, row.now)
		}
	}
}
