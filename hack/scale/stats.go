// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

// seconds is how results give times.
type seconds float64

func toSeconds(d time.Duration) seconds { return seconds(d.Seconds()) }

// spread sums up how long something took, in seconds.
type spread struct {
	Count int     `json:"count"`
	P50   seconds `json:"p50"`
	P99   seconds `json:"p99"`
	Max   seconds `json:"max"`
}

func spreadOf(values []seconds) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{Count: len(sorted), P50: percentile(sorted, 50), P99: percentile(sorted, 99), Max: percentile(sorted, 100)}
}

// percentile returns the least of the sorted values that at least p percent of
// them do not exceed (nearest rank), 0 if there are none.
func percentile(sorted []seconds, p float64) seconds {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
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

// perSecond counts the times in each second after start.
func perSecond(times []time.Time, start time.Time) []int {
	var counts []int
	for _, t := range times {
		second := int(max(t.Sub(start), 0) / time.Second)
		for len(counts) <= second {
			counts = append(counts, 0)
		}
		counts[second]++
	}
	return counts
}
