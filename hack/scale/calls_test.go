// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCallsAreSummedUp(t *testing.T) {
	calls := []iaasmock.Call{
		{Operation: "Token", Method: "POST", Status: 200},
		{Operation: "CreateServer", Method: "POST", Status: 503},
		{Operation: "CreateServer", Method: "POST", Status: 201},
		{Operation: "CreateServer", Method: "POST", Status: 201},
		{Operation: "ListServers", Method: "GET", Status: 200},
		{Operation: "GetServer", Method: "GET", Status: 200},
	}
	for i, at := range after(0, 100, 200, 300, 1250, 5000) {
		calls[i].StartedAt = at
	}
	NewWithT(t).Expect(summarize(calls, 2)).To(Equal(callSummary{
		Total: 5, PerServer: 2.5,
		ByOperation: map[string]float64{"CreateServer": 1.5, "ListServers": 0.5, "GetServer": 0.5},
		ReadsPeak:   1,
	}))
}

func TestCallsOfAPhaseWithoutServers(t *testing.T) {
	s := summarize([]iaasmock.Call{{Operation: "ListServers", Method: "GET", StartedAt: begin}}, 0)
	NewWithT(t).Expect(s.Total).To(Equal(1))
}

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// after returns times that many milliseconds after begin.
func after(milliseconds ...int) []time.Time {
	var times []time.Time
	for _, ms := range milliseconds {
		times = append(times, begin.Add(time.Duration(ms)*time.Millisecond))
	}
	return times
}

func TestPeak(t *testing.T) {
	for name, row := range map[string]struct {
		times []time.Time
		want  int
	}{
		"nothing":                            {nil, 0},
		"one":                                {after(500), 1},
		"all at once":                        {after(5, 5, 5), 3},
		"across the border of a second":      {after(0, 900, 950, 1100, 1899, 3000), 4},
		"a second apart is another window":   {after(0, 1000, 2000), 1},
		"in the order of their answers":      {after(1100, 0, 950, 900), 3},
		"the busiest window is not the last": {after(0, 1, 2, 5000, 6000), 3},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(peak(row.times)).To(Equal(row.want))
		})
	}
}
