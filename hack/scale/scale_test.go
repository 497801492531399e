// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func machineObject(name, class string, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Class.Name, m.Status.CurrentStatus.Phase = class, phase
	return m
}

func deleting(m *v1alpha1.Machine) *v1alpha1.Machine {
	m.DeletionTimestamp = &metav1.Time{Time: begin}
	return m
}

// TestMachinesAreCounted lets a second pass before each event.
func TestMachinesAreCounted(t *testing.T) {
	g := NewWithT(t)
	now := begin
	m := newMachines(func() time.Time { return now })
	for _, event := range []struct {
		object any
		exists bool
		want   counts
	}{
		{machineObject("a", "new", v1alpha1.MachinePending), true, counts{1, 0}},
		{machineObject("b", "old", v1alpha1.MachineRunning), true, counts{2, 0}},
		{machineObject("a", "new", v1alpha1.MachineRunning), true, counts{2, 1}},
		{machineObject("a", "new", v1alpha1.MachineRunning), true, counts{2, 1}},
		{deleting(machineObject("a", "new", v1alpha1.MachineRunning)), true, counts{2, 0}},
		{deleting(machineObject("a", "new", v1alpha1.MachineTerminating)), false, counts{1, 0}},
		{cache.DeletedFinalStateUnknown{Obj: machineObject("b", "old", v1alpha1.MachineRunning)}, false, counts{}},
		{"no machine", true, counts{}},
	} {
		now = now.Add(time.Second)
		m.observe(event.object, event.exists)
		g.Expect(m.counts("new")).To(Equal(event.want))
	}
	a := m.observation("a")
	g.Expect([]time.Time{a.seen, a.running}).To(Equal(after(1000, 3000)))
	g.Expect(m.observation("never")).To(BeZero())
}

func TestWaits(t *testing.T) {
	g := NewWithT(t)
	at := func(ms int) time.Time { return after(ms)[0] }
	seen := map[string]observation{
		"good":        {seen: at(1000), running: at(25000)},
		"earlier":     {seen: at(-9000), running: at(25000)},
		"not running": {seen: at(1000)},
		"not active":  {seen: at(1000), running: at(25000)},
	}
	find := func(name string) observation { return seen[name] }
	before, over := waits([]iaasmock.Server{
		{Name: "good", CreatedAt: at(3000), LaunchedAt: at(23000)},
		{Name: "earlier", CreatedAt: at(-5000), LaunchedAt: at(15000)},
		{Name: "not running", CreatedAt: at(3000), LaunchedAt: at(23000)},
		{Name: "not active", CreatedAt: at(3000)},
		{Name: "of nobody", CreatedAt: at(3000), LaunchedAt: at(23000)},
	}, find, begin)
	g.Expect(before).To(Equal(spread{1, 2, 2}))
	g.Expect(over).To(Equal(spread{1, 2, 2}))
}

func TestCallsAreSummedUp(t *testing.T) {
	g := NewWithT(t)
	calls := []iaasmock.Call{{Method: "POST"}, {Method: "GET"}, {Method: "POST"}, {Method: "GET"}, {Method: "GET"}}
	for i, at := range after(0, 100, 200, 300, 5000) {
		calls[i].StartedAt = at
	}
	counts := map[string]int{"Token": 1, "CreateServer": 3, "ListServers": 1, "GetServer": 1}
	g.Expect(summarize(counts, calls, 2)).To(Equal(callSummary{
		perServer: 2.5, readsPeak: 2,
		byOperation: map[string]float64{"CreateServer": 1.5, "ListServers": 0.5, "GetServer": 0.5},
	}))
	g.Expect(summarize(map[string]int{"ListServers": 1}, nil, 0).perServer).To(Equal(1.0), "a phase without servers")
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

func TestPhasesEndWhenNothingIsTooMuch(t *testing.T) {
	g := NewWithT(t)
	all := phases(10, 2, true)
	up, down := all[0], all[2]
	for i, p := range phases(10, 2, false) {
		g.Expect(p.name).To(Equal([]string{"up", "down"}[i]))
	}
	g.Expect(up.done(counts{10, 9})).To(BeFalse())
	g.Expect(up.done(counts{12, 10})).To(BeTrue())
	g.Expect(up.settled(counts{12, 10}, 10)).To(BeFalse())
	g.Expect(up.settled(counts{10, 10}, 11)).To(BeFalse())
	g.Expect(up.settled(counts{10, 10}, 10)).To(BeTrue())
	g.Expect(down.done(counts{3, 3})).To(BeFalse())
	g.Expect(down.settled(counts{2, 2}, 3)).To(BeFalse())
	g.Expect(down.settled(counts{2, 2}, 2)).To(BeTrue())
}
