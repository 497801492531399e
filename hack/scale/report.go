// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
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

// result is a whole run, as it is written to a file. Times are in seconds.
type result struct {
	Conditions options       `json:"conditions"`
	CPUs       int           `json:"cpus"`
	StartedAt  time.Time     `json:"startedAt"`
	Phases     []phaseResult `json:"phases"`
}

// phaseResult is one of up, roll and down.
type phaseResult struct {
	Name string `json:"name"`
	// Took is until the Machines that were asked for were Running, or no others were left.
	// Settled is until nothing too much was left either: the manager makes more Machines
	// than asked for at times, and deletes them again.
	Took           float64 `json:"took"`
	Settled        float64 `json:"settled"`
	ServersCreated int     `json:"serversCreated"`
	ServersDeleted int     `json:"serversDeleted"`
	// BeforeServer is, for each server made in the phase that is there at its end, the time
	// from the Machine to its server; OverBoot from ACTIVE to the Machine's being Running.
	BeforeServer spread      `json:"beforeServer"`
	OverBoot     spread      `json:"overBoot"`
	Calls        callSummary `json:"calls"`
	// Usage is that of both controllers, from the beginning of the phase until it settled.
	Usage map[localenv.Part]usage `json:"usage,omitempty"`
}

// spread sums up how long something took.
type spread struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
}

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{Count: len(sorted), P50: percentile(sorted, 50), P99: percentile(sorted, 99)}
}

// percentile returns the least of the sorted values that at least p percent of
// them do not exceed (nearest rank), 0 if there are none.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(p/100*float64(len(sorted)))), 1)-1]
}

func (r *result) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

func readResult(path string) (*result, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// readFloor reads the result of the instant driver. It is an error if that says nothing
// about a run with these conditions.
func readFloor(path string, ours options) (*result, error) {
	floor, err := readResult(path)
	if err != nil {
		return nil, err
	}
	theirs := floor.Conditions
	if ours.Machines != theirs.Machines || ours.Keep != theirs.Keep || ours.Boot != theirs.Boot || ours.Join != theirs.Join {
		return nil, fmt.Errorf("it was measured with %s", theirs)
	}
	return floor, nil
}
