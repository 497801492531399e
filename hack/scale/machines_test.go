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
	m.begin("new")
	for _, event := range []struct {
		object any
		gone   bool
	}{
		{machineObject("a", "new", v1alpha1.MachinePending), false},
		{machineObject("b", "old", v1alpha1.MachineRunning), false},
		{machineObject("a", "new", v1alpha1.MachineRunning), false},
		{machineObject("a", "new", v1alpha1.MachineRunning), false}, // changes nothing
		{deleting(machineObject("a", "new", v1alpha1.MachineRunning)), false},
		{deleting(machineObject("a", "new", v1alpha1.MachineTerminating)), true},
		{cache.DeletedFinalStateUnknown{Obj: machineObject("b", "old", v1alpha1.MachineRunning)}, true},
		{"no machine", false},
	} {
		now = now.Add(time.Second)
		m.observe(event.object, event.gone)
	}
	g.Expect(m.counts()).To(Equal(counts{}))
	g.Expect(thin(m.since(), begin)).To(Equal([]moment{
		{0, counts{}}, {1, counts{Machines: 1}}, {2, counts{Machines: 2}}, {3, counts{Machines: 2, Running: 1}},
		{5, counts{Machines: 2}}, {6, counts{Machines: 1}}, {7, counts{}},
	}))
	a, found := m.sighting("a")
	g.Expect(found).To(BeTrue())
	g.Expect([]time.Time{a.seen, a.running}).To(Equal(after(1000, 3000)))
	_, found = m.sighting("never")
	g.Expect(found).To(BeFalse())

	m.begin("old")
	g.Expect(m.since()).To(HaveLen(1))
}

func TestThinKeepsTheLastOfAHalfSecond(t *testing.T) {
	var changes []change
	for i, at := range after(0, 100, 499, 500, 2600) {
		changes = append(changes, change{at: at, counts: counts{Machines: i}})
	}
	NewWithT(t).Expect(thin(changes, begin)).To(Equal([]moment{
		{0.499, counts{Machines: 2}}, {0.5, counts{Machines: 3}}, {2.6, counts{Machines: 4}}}))
}

func TestWaits(t *testing.T) {
	g := NewWithT(t)
	at := func(ms int) time.Time { return after(ms)[0] }
	seen := map[string]sighting{
		"good":        {seen: at(1000), running: at(25000)},
		"earlier":     {seen: at(-9000), running: at(25000)},
		"not running": {seen: at(1000)},
		"not active":  {seen: at(1000), running: at(25000)},
	}
	find := func(name string) (sighting, bool) { s, found := seen[name]; return s, found }
	before, over := waits([]iaasmock.Server{
		{Name: "good", CreatedAt: at(3000), LaunchedAt: at(23000)},
		{Name: "earlier", CreatedAt: at(-5000), LaunchedAt: at(15000)},
		{Name: "not running", CreatedAt: at(3000), LaunchedAt: at(23000)},
		{Name: "not active", CreatedAt: at(3000)},
		{Name: "of nobody", CreatedAt: at(3000), LaunchedAt: at(23000)},
	}, find, begin)
	g.Expect(before).To(Equal(spread{1, 2, 2, 2}))
	g.Expect(over).To(Equal(spread{1, 2, 2, 2}))
}
