// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// tokenOperation is how the mock names calls of the token endpoint, which is
// none of the IaaS API's.
const tokenOperation = "Token"

// steadyWindow is long enough that one burst does not decide.
const steadyWindow = 10 * time.Second

// callSummary is what a phase has asked of the IaaS API. Answers that were 503 are
// calls, too, and so is what was tried again after them.
type callSummary struct {
	Total int `json:"total"`
	// PerServer and ByOperation are calls for each server that the phase was about.
	PerServer   float64            `json:"perServer"`
	ByOperation map[string]float64 `json:"byOperation"`
	Refused     int                `json:"refused"`
	Tokens      int                `json:"tokens"`
	// PeakPerSecond and ReadsPeakPerSecond are of the busiest second, wherever it
	// begins; reads are GETs, of lists and of single things.
	PeakPerSecond      int `json:"peakPerSecond"`
	ReadsPeakPerSecond int `json:"readsPeakPerSecond"`
	// SteadyPerSecond and ReadsSteadyPerSecond are of the busiest ten seconds.
	SteadyPerSecond      float64 `json:"steadyPerSecond"`
	ReadsSteadyPerSecond float64 `json:"readsSteadyPerSecond"`
	// PerSecond has the calls of each second since the phase began.
	PerSecond []int `json:"perSecond"`
}

// summarize sums up the calls of a phase that began at start and was about so many
// servers.
func summarize(calls []iaasmock.Call, start time.Time, servers int) callSummary {
	s := callSummary{ByOperation: map[string]float64{}}
	var all, reads []time.Time
	for _, call := range calls {
		if call.Operation == tokenOperation {
			s.Tokens++
			continue
		}
		all = append(all, call.StartedAt)
		if call.Method == http.MethodGet {
			reads = append(reads, call.StartedAt)
		}
		if call.Status == http.StatusServiceUnavailable {
			s.Refused++
		}
		s.ByOperation[call.Operation]++
	}
	s.Total = len(all)
	if servers > 0 {
		s.PerServer = float64(s.Total) / float64(servers)
		for operation := range s.ByOperation {
			s.ByOperation[operation] /= float64(servers)
		}
	}
	s.PeakPerSecond, s.ReadsPeakPerSecond = peak(all, time.Second), peak(reads, time.Second)
	s.SteadyPerSecond = float64(peak(all, steadyWindow)) / steadyWindow.Seconds()
	s.ReadsSteadyPerSecond = float64(peak(reads, steadyWindow)) / steadyWindow.Seconds()
	s.PerSecond = perSecond(all, start)
	return s
}

// callLog collects what the mock remembers of calls, before it forgets: it keeps
// the last 20000.
type callLog struct {
	last  string
	calls []iaasmock.Call
	// lost: calls were forgotten before they were collected.
	lost bool
}

// add takes the calls that are new in what the mock keeps.
func (l *callLog) add(kept []iaasmock.Call) {
	first := len(kept)
	for first > 0 && kept[first-1].RequestID != l.last {
		first--
	}
	if first == 0 && l.last != "" {
		l.lost = true
	}
	l.calls = append(l.calls, kept[first:]...)
	if len(kept) > 0 {
		l.last = kept[len(kept)-1].RequestID
	}
}

// take returns the calls since the last take.
func (l *callLog) take() []iaasmock.Call {
	calls := l.calls
	l.calls = nil
	return calls
}
