// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	// rememberedCalls is how many the mock remembers.
	rememberedCalls = 20000
	// tokenOperation is how the mock names calls of the token endpoint, which is none of the
	// IaaS API's.
	tokenOperation = "Token"
	// steadyWindow is long enough that one burst does not decide.
	steadyWindow = 10 * time.Second
)

// callSummary has the IaaS API calls of a phase. Answers that were 503 are calls, too, and
// so are retries after them.
type callSummary struct {
	Total int `json:"total"`
	// PerServer and ByOperation are calls for each server that the phase was about.
	PerServer   float64            `json:"perServer"`
	ByOperation map[string]float64 `json:"byOperation"`
	Refused     int                `json:"refused"`
	// Peak and ReadsPeak are of the busiest second, wherever it begins; reads are GETs, of
	// lists and of single things.
	Peak      int `json:"peakPerSecond"`
	ReadsPeak int `json:"readsPeakPerSecond"`
	// Steady and ReadsSteady are calls a second of the busiest ten seconds.
	Steady      float64 `json:"steadyPerSecond"`
	ReadsSteady float64 `json:"readsSteadyPerSecond"`
}

// summarize sums up the calls of a phase that was about so many servers.
func summarize(calls []iaasmock.Call, servers int) callSummary {
	s := callSummary{ByOperation: map[string]float64{}}
	var all, reads []time.Time
	share := 1 / float64(max(servers, 1))
	for _, call := range calls {
		if call.Operation == tokenOperation {
			continue
		}
		all = append(all, call.StartedAt)
		if call.Method == http.MethodGet {
			reads = append(reads, call.StartedAt)
		}
		if call.Status == http.StatusServiceUnavailable {
			s.Refused++
		}
		s.ByOperation[call.Operation] += share
	}
	s.Total, s.PerServer = len(all), float64(len(all))*share
	s.Peak, s.ReadsPeak = peak(all, time.Second), peak(reads, time.Second)
	s.Steady = float64(peak(all, steadyWindow)) / steadyWindow.Seconds()
	s.ReadsSteady = float64(peak(reads, steadyWindow)) / steadyWindow.Seconds()
	return s
}

// peak returns the most of the times that fall into any window of this length. A
// window includes its begin and not its end.
func peak(times []time.Time, window time.Duration) int {
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most, first := 0, 0
	for last, t := range sorted {
		for t.Sub(sorted[first]) >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
