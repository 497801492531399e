// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSpread(t *testing.T) {
	hundred := make([]seconds, 100)
	for i := range hundred {
		hundred[i] = seconds(100 - i)
	}
	for name, row := range map[string]struct {
		values []seconds
		want   spread
	}{
		"nothing":           {nil, spread{}},
		"one":               {[]seconds{7}, spread{1, 7, 7, 7}},
		"three, not sorted": {[]seconds{3, 1, 2}, spread{3, 2, 3, 3}},
		"a hundred":         {hundred, spread{100, 50, 99, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(spreadOf(row.values)).To(Equal(row.want))
		})
	}
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
			NewWithT(t).Expect(peak(row.times, time.Second)).To(Equal(row.want))
		})
	}
}

func TestPerSecond(t *testing.T) {
	g := NewWithT(t)
	g.Expect(perSecond(after(-3, 0, 999, 1000, 3500), begin)).To(Equal([]int{3, 1, 0, 1}))
	g.Expect(perSecond(nil, begin)).To(BeEmpty())
}
