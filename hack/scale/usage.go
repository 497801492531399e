// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/procfs"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// usage is what a controller used in a phase.
type usage struct {
	// Cores is its CPU time by the phase's length.
	Cores float64 `json:"cores"`
	// PeakMiB is the most memory it had since its start, in mebibytes.
	PeakMiB float64 `json:"peakMiB"`
}

// consumed is what a process has used since its start.
type consumed struct {
	cpu  time.Duration
	peak uint64
}

// consumption returns what both controllers have used; nothing on systems without /proc.
func consumption(env *localenv.Env) map[localenv.Part]consumed {
	all := map[localenv.Part]consumed{}
	for _, part := range env.Controllers() {
		process, err := procfs.NewProc(env.PID(part))
		if err != nil {
			return nil
		}
		stat, err := process.Stat()
		if err != nil {
			return nil
		}
		status, err := process.NewStatus()
		if err != nil {
			return nil
		}
		all[part] = consumed{cpu: time.Duration(stat.CPUTime() * float64(time.Second)), peak: status.VmHWM}
	}
	return all
}

// usageBetween returns what each controller used in a phase.
func usageBetween(before, after map[localenv.Part]consumed, took time.Duration) map[localenv.Part]usage {
	used := map[localenv.Part]usage{}
	for part, end := range after {
		used[part] = usage{
			Cores:   (end.cpu - before[part].cpu).Seconds() / took.Seconds(),
			PeakMiB: float64(end.peak) / (1 << 20),
		}
	}
	return used
}
