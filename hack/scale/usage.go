// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
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
func (m *measurement) consumption() map[localenv.Part]consumed {
	all := map[localenv.Part]consumed{}
	for _, part := range m.env.Controllers() {
		process, err := procfs.NewProc(m.env.PID(part))
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

// usageRows are two rows of the table for each controller.
func (r *result) usageRows(row func(title string, cell func(phaseResult) string)) {
	for _, part := range slices.Sorted(maps.Keys(r.Phases[0].Usage)) {
		row(string(part), func(phaseResult) string { return "" })
		row("  CPU (cores)", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Usage[part].Cores) })
		row("  most memory so far (MiB)", func(p phaseResult) string { return fmt.Sprintf("%.0f", p.Usage[part].PeakMiB) })
	}
}
