// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

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
