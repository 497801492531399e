// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

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
	NewWithT(t).Expect(summarize(calls, begin, 2)).To(Equal(callSummary{
		Total: 5, PerServer: 2.5, Refused: 1, Tokens: 1,
		ByOperation:   map[string]float64{"CreateServer": 1.5, "ListServers": 0.5, "GetServer": 0.5},
		PeakPerSecond: 3, ReadsPeakPerSecond: 1, SteadyPerSecond: 0.5, ReadsSteadyPerSecond: 0.2,
		PerSecond: []int{3, 1, 0, 0, 0, 1},
	}))
}

func TestCallsOfAPhaseWithoutServers(t *testing.T) {
	g := NewWithT(t)
	s := summarize([]iaasmock.Call{{Operation: "ListServers", Method: "GET", StartedAt: begin}}, begin, 0)
	g.Expect(s.Total).To(Equal(1))
	g.Expect(s.PerServer).To(BeZero())
}

// calls from one number to another, as the mock keeps them.
func calls(from, to int) []iaasmock.Call {
	var kept []iaasmock.Call
	for i := from; i <= to; i++ {
		kept = append(kept, iaasmock.Call{RequestID: fmt.Sprint(i)})
	}
	return kept
}

func TestCallLog(t *testing.T) {
	for name, row := range map[string]struct {
		kept [][]iaasmock.Call
		want []iaasmock.Call
		lost bool
	}{
		"nothing ever":               {[][]iaasmock.Call{nil, nil}, nil, false},
		"each is taken once":         {[][]iaasmock.Call{nil, calls(1, 2), calls(1, 2), calls(1, 4)}, calls(1, 4), false},
		"what was collected may go":  {[][]iaasmock.Call{calls(1, 3), calls(3, 5)}, calls(1, 5), false},
		"what was not must not":      {[][]iaasmock.Call{calls(1, 3), calls(5, 6)}, append(calls(1, 3), calls(5, 6)...), true},
		"the first look sees it all": {[][]iaasmock.Call{calls(1, 3)}, calls(1, 3), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var log callLog
			for _, kept := range row.kept {
				log.add(kept)
			}
			g.Expect(log.take()).To(Equal(row.want))
			g.Expect(log.lost).To(Equal(row.lost))
			g.Expect(log.take()).To(BeEmpty())
		})
	}
}
