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
