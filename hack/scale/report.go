// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// phaseResult is the result of up, roll or down. Times are in seconds.
type phaseResult struct {
	name string
	// took is the time until the requested Machines were Running, or no others were left. settled is the time until
	// nothing in excess was left either: the manager at times creates more Machines than requested, and deletes
	// them again.
	took, settled                  float64
	serversCreated, serversDeleted int
	// beforeServer is, for each server created in the phase that exists at its end, the time from the Machine to its
	// server; overBoot the time from ACTIVE until the Machine is Running.
	beforeServer, overBoot spread
	calls                  callSummary
	// usage is the usage of both controllers, from the phase's start until it settled.
	usage map[localenv.Part]usage
}

// table renders the figures of a run, with a column for each phase.
func table(phases []phaseResult) string {
	var table strings.Builder
	row := func(title string, cell func(phaseResult) string) {
		_, _ = fmt.Fprintf(&table, "%-36s", title)
		for _, p := range phases {
			_, _ = fmt.Fprintf(&table, "%14s", cell(p))
		}
		table.WriteString("\n")
	}
	row("", func(p phaseResult) string { return p.name })
	row("time to all (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", p.took) })
	row("nothing left over after (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", p.settled) })
	row("servers made", func(p phaseResult) string { return fmt.Sprint(p.serversCreated) })
	row("servers deleted", func(p phaseResult) string { return fmt.Sprint(p.serversDeleted) })
	row("Machine to server, p50 / p99 (s)", func(p phaseResult) string { return p.beforeServer.String() })
	row("ACTIVE to Running, p50 / p99 (s)", func(p phaseResult) string { return p.overBoot.String() })
	row("API calls a server", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.calls.perServer) })
	operations := map[string]float64{}
	for _, p := range phases {
		maps.Copy(operations, p.calls.byOperation)
	}
	for _, operation := range slices.Sorted(maps.Keys(operations)) {
		row("  "+operation, func(p phaseResult) string { return fmt.Sprintf("%.2f", p.calls.byOperation[operation]) })
	}
	row("most reads in a second", func(p phaseResult) string { return fmt.Sprint(p.calls.readsPeak) })
	for _, part := range slices.Sorted(maps.Keys(phases[0].usage)) {
		row(string(part), func(phaseResult) string { return "" })
		row("  CPU (cores)", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.usage[part].cores) })
		row("  most memory so far (MiB)", func(p phaseResult) string {
			return fmt.Sprintf("%.0f", p.usage[part].peakMiB)
		})
	}
	return table.String()
}

// spread summarizes durations.
type spread struct {
	count    int
	p50, p99 float64
}

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{count: len(sorted), p50: percentile(sorted, 50), p99: percentile(sorted, 99)}
}

// String returns the 50th and 99th percentile; "-" for an empty spread.
func (s spread) String() string {
	if s.count == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f / %.1f", s.p50, s.p99)
}

// percentile returns the p-th percentile of sorted values by the nearest-rank method; 0 if there
// are none.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(p/100*float64(len(sorted)))), 1)-1]
}
