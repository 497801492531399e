// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

func (o options) String() string {
	text := fmt.Sprintf("%d machines, %d kept, boot %s, join %s, delete %s",
		o.Machines, o.Keep, o.Boot.Duration, o.Join.Duration, o.Delete.Duration)
	if o.Faults > 0 {
		text += fmt.Sprintf(", %g%% of calls answered 503", o.Faults*100)
	}
	if len(o.AllowedAddresses) > 0 {
		text += ", with allowedAddresses"
	}
	return text
}

// table has the figures of a run, a phase a column; floor is nil if there is none.
func (r *result) table(floor *result) string {
	var table strings.Builder
	row := func(title string, cell func(phaseResult) string) {
		_, _ = fmt.Fprintf(&table, "%-36s", title)
		for _, p := range r.Phases {
			_, _ = fmt.Fprintf(&table, "%14s", cell(p))
		}
		table.WriteString("\n")
	}
	_, _ = fmt.Fprintf(&table, "driver %s: %s\n%d CPUs\n\n", r.Conditions.Driver, r.Conditions, r.CPUs)
	row("", func(p phaseResult) string { return p.Name })
	row("time to all (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", p.Took) })
	if floor != nil {
		// It may not have rolled.
		number := func(format string, value float64) string {
			return strings.ReplaceAll(fmt.Sprintf(format, value), "NaN", "-")
		}
		row("  of the floor (s)", func(p phaseResult) string { return number("%.1f", floor.took(p.Name)) })
		row("  times the floor", func(p phaseResult) string { return number("%.2f", p.Took/floor.took(p.Name)) })
	}
	row("nothing left over after (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", p.Settled) })
	row("servers made", func(p phaseResult) string { return fmt.Sprint(p.ServersCreated) })
	row("servers deleted", func(p phaseResult) string { return fmt.Sprint(p.ServersDeleted) })
	row("Machine to server, p50 / p99 (s)", func(p phaseResult) string { return p.BeforeServer.String() })
	row("ACTIVE to Running, p50 / p99 (s)", func(p phaseResult) string { return p.OverBoot.String() })
	row("API calls a server", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Calls.PerServer) })
	operations := map[string]float64{}
	for _, p := range r.Phases {
		maps.Copy(operations, p.Calls.ByOperation)
	}
	for _, operation := range slices.Sorted(maps.Keys(operations)) {
		row("  "+operation, func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Calls.ByOperation[operation]) })
	}
	row("most reads in a second", func(p phaseResult) string { return fmt.Sprint(p.Calls.ReadsPeak) })
	r.usageRows(row)
	return table.String()
}

// String leaves out a spread of nothing.
func (s spread) String() string {
	if s.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f / %.1f", s.P50, s.P99)
}

// took returns how long the phase took; NaN if there is none of this name.
func (r *result) took(name string) float64 {
	for _, p := range r.Phases {
		if p.Name == name {
			return p.Took
		}
	}
	return math.NaN()
}

// usageRows are two rows of the table for each controller.
func (r *result) usageRows(row func(title string, cell func(phaseResult) string)) {
	for _, part := range slices.Sorted(maps.Keys(r.Phases[0].Usage)) {
		row(string(part), func(phaseResult) string { return "" })
		row("  CPU (cores)", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Usage[part].Cores) })
		row("  most memory so far (MiB)", func(p phaseResult) string { return fmt.Sprintf("%.0f", p.Usage[part].PeakMiB) })
	}
}
