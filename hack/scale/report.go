// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// headline says in a few words what was measured.
func (c conditions) headline() string {
	return fmt.Sprintf("%d machines, driver %s", c.Machines, c.Driver)
}

// details says under which conditions.
func (c conditions) details() string {
	text := fmt.Sprintf("boot %gs, join %gs, delete %gs, %d kept, surge %s", c.Boot, c.Join, c.Delete, c.Keep, c.Surge)
	if c.LatencyMax > 0 {
		text += fmt.Sprintf(", API latency %g to %g ms", c.LatencyMin*1000, c.LatencyMax*1000)
	}
	if c.Faults > 0 {
		text += fmt.Sprintf(", %g%% of calls answered 503", c.Faults*100)
	}
	if c.AllowedAddresses {
		text += ", with allowedAddresses"
	}
	return text
}

// processor says what the run was made on.
func (c computer) processor() string { return fmt.Sprintf("%d CPUs %s", c.CPUs, c.Model) }

// report prints the figures of a run as a table, a phase a column.
func report(out io.Writer, r, floor *result) error {
	var table strings.Builder
	row := func(title string, cell func(phaseResult) string) {
		_, _ = fmt.Fprintf(&table, "%-36s", title)
		for _, p := range r.Phases {
			_, _ = fmt.Fprintf(&table, "%14s", cell(p))
		}
		table.WriteString("\n")
	}
	row("", func(p phaseResult) string { return p.Name })
	row("time to all (s)", func(p phaseResult) string { return tenths(p.Took) })
	if floor != nil {
		row("  of the floor (s)", func(p phaseResult) string { return floorTook(p, floor) })
		row("  times the floor", func(p phaseResult) string { return timesFloor(p, floor) })
	}
	row("settled after (s)", func(p phaseResult) string { return tenths(p.Settled) })
	row("servers made", func(p phaseResult) string { return fmt.Sprint(p.ServersCreated) })
	row("servers deleted", func(p phaseResult) string { return fmt.Sprint(p.ServersDeleted) })
	row("Machine to server, p50 / p99 (s)", func(p phaseResult) string { return spreadCell(p.BeforeServer) })
	row("ACTIVE to Running, p50 / p99 (s)", func(p phaseResult) string { return spreadCell(p.OverBoot) })
	row("API calls a server", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Calls.PerServer) })
	for _, operation := range operations(r) {
		row("  "+operation, func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Calls.ByOperation[operation]) })
	}
	row("calls refused with 503", func(p phaseResult) string { return fmt.Sprint(p.Calls.Refused) })
	row("tokens fetched", func(p phaseResult) string { return fmt.Sprint(p.Calls.Tokens) })
	row("calls a second, peak / over 10 s", func(p phaseResult) string {
		return fmt.Sprintf("%d / %.1f", p.Calls.PeakPerSecond, p.Calls.SteadyPerSecond)
	})
	row("reads a second, peak / over 10 s", func(p phaseResult) string {
		return fmt.Sprintf("%d / %.1f", p.Calls.ReadsPeakPerSecond, p.Calls.ReadsSteadyPerSecond)
	})
	for _, part := range append(partNames(), cloudPart, othersPart) {
		row("CPU (s), "+part, func(p phaseResult) string { return tenths(p.CPU[part]) })
	}
	return say(out, "\n%s\n%s\n%s\n\n%s\n%s: ready after %.2f s, %.0f MiB resident when idle (%.0f of it anonymous), %.0f MiB at most\n",
		r.Conditions.headline(), r.Conditions.details(), r.Computer.processor(), &table, localenv.PartSidecar, r.SidecarReady, r.SidecarIdle, r.SidecarIdleAnonymous, r.SidecarPeak)
}

func tenths(s seconds) string { return fmt.Sprintf("%.1f", s) }

// spreadCell leaves out what nothing was measured of.
func spreadCell(s spread) string {
	if s.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f / %.1f", s.P50, s.P99)
}

func floorTook(p phaseResult, floor *result) string {
	if same := floor.phase(p.Name); same != nil {
		return tenths(same.Took)
	}
	return "-"
}

func timesFloor(p phaseResult, floor *result) string {
	if same := floor.phase(p.Name); same != nil && same.Took > 0 {
		return fmt.Sprintf("%.2f", p.Took/same.Took)
	}
	return "-"
}

// operations are all that were called, in alphabetical order.
func operations(r *result) []string {
	all := map[string]bool{}
	for _, p := range r.Phases {
		for operation := range p.Calls.ByOperation {
			all[operation] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func partNames() []string {
	var names []string
	for _, part := range parts {
		names = append(names, string(part))
	}
	return names
}
