// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// callSummary has the IaaS API calls of a phase. Answers that were 503 are calls, too, and
// so are retries after them.
type callSummary struct {
	Total int `json:"total"`
	// PerServer and ByOperation are calls for each server that the phase was about.
	PerServer   float64            `json:"perServer"`
	ByOperation map[string]float64 `json:"byOperation"`
	// ReadsPeak is how many reads the busiest second has, wherever it begins: GETs, of lists
	// and of single things.
	ReadsPeak int `json:"readsPeakPerSecond"`
}

// summarize sums up the calls of a phase that was about so many servers.
func summarize(calls []iaasmock.Call, servers int) callSummary {
	s := callSummary{ByOperation: map[string]float64{}}
	var reads []time.Time
	share := 1 / float64(max(servers, 1))
	for _, call := range calls {
		if call.Operation == fault.OperationToken {
			continue
		}
		s.Total++
		if call.Method == http.MethodGet {
			reads = append(reads, call.StartedAt)
		}
		s.ByOperation[call.Operation] += share
	}
	s.PerServer, s.ReadsPeak = float64(s.Total)*share, peak(reads)
	return s
}

// peak returns the most of the times that fall into any second. A second includes its begin
// and not its end.
func peak(times []time.Time) int {
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most, first := 0, 0
	for last, t := range sorted {
		for t.Sub(sorted[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
