// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (c conditions) String() string {
	text := fmt.Sprintf("%d machines, %d kept, boot %gs, join %gs, delete %gs", c.Machines, c.Keep, c.Boot, c.Join, c.Delete)
	if c.Faults > 0 {
		text += fmt.Sprintf(", %g%% of calls answered 503", c.Faults*100)
	}
	if c.AllowedAddresses {
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
	_, _ = fmt.Fprintf(&table, "driver %s: %s\n%s\n\n", r.Conditions.Driver, r.Conditions, r.Computer)
	row("", func(p phaseResult) string { return p.Name })
	row("time to all (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", p.Took) })
	if floor != nil {
		row("  of the floor (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", floor.took(p.Name)) })
		row("  times the floor", func(p phaseResult) string {
			if floor.took(p.Name) == 0 {
				return "-" // it did not roll
			}
			return fmt.Sprintf("%.2f", p.Took/floor.took(p.Name))
		})
	}
	row("settled after (s)", func(p phaseResult) string { return fmt.Sprintf("%.1f", p.Settled) })
	row("servers made", func(p phaseResult) string { return fmt.Sprint(p.ServersCreated) })
	row("servers deleted", func(p phaseResult) string { return fmt.Sprint(p.ServersDeleted) })
	row("Machine to server, p50 / p99 (s)", func(p phaseResult) string { return p.BeforeServer.String() })
	row("ACTIVE to Running, p50 / p99 (s)", func(p phaseResult) string { return p.OverBoot.String() })
	row("API calls a server", func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Calls.PerServer) })
	for _, operation := range r.operations() {
		row("  "+operation, func(p phaseResult) string { return fmt.Sprintf("%.2f", p.Calls.ByOperation[operation]) })
	}
	row("calls refused with 503", func(p phaseResult) string { return fmt.Sprint(p.Calls.Refused) })
	row("calls a second, peak / over 10 s", func(p phaseResult) string {
		return fmt.Sprintf("%d / %.1f", p.Calls.Peak, p.Calls.Steady)
	})
	row("reads a second, peak / over 10 s", func(p phaseResult) string {
		return fmt.Sprintf("%d / %.1f", p.Calls.ReadsPeak, p.Calls.ReadsSteady)
	})
	return table.String()
}

// String leaves out a spread of nothing.
func (s spread) String() string {
	if s.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f / %.1f", s.P50, s.P99)
}

// took returns how long the phase took; 0 if there is none of this name.
func (r *result) took(name string) float64 {
	for _, p := range r.Phases {
		if p.Name == name {
			return p.Took
		}
	}
	return 0
}

// operations are all that were called, in alphabetical order.
func (r *result) operations() []string {
	all := map[string]bool{}
	for _, p := range r.Phases {
		for operation := range p.Calls.ByOperation {
			all[operation] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
