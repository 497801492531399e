// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// fleet is the rig with many machines, which workers take through the calls that
// the manager makes. It lives in synctest's time.
type fleet struct {
	*rig
	machines []*v1alpha1.Machine
	workers  int

	mu   sync.Mutex
	took map[string]time.Duration
}

// many is how many machines a test with many of them has: a tenth in short mode. The race
// detector makes the full size take minutes.
func many(machines int) int {
	if testing.Short() {
		return machines / 10
	}
	return machines
}

func newFleet(t testing.TB, machines, workers int, options ...iaasmock.Option) *fleet {
	t.Helper()
	c := &fleet{rig: newRig(t, append([]iaasmock.Option{
		iaasmock.WithBootDuration(12 * time.Second), iaasmock.WithBootSpread(3 * time.Second),
		iaasmock.WithLatency(30*time.Millisecond, 80*time.Millisecond),
	}, options...)...), workers: workers, took: map[string]time.Duration{}}
	for i := range machines {
		c.machines = append(c.machines, machine(fmt.Sprintf("machine-%04d", i)))
	}
	return c
}

// each lets the workers run f for every machine.
func (c *fleet) each(f func(*v1alpha1.Machine)) {
	todo := make(chan *v1alpha1.Machine)
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for m := range todo {
				f(m)
			}
		})
	}
	for _, m := range c.machines {
		todo <- m
	}
	close(todo)
	workers.Wait()
}

// bringUp is what the manager does until it waits for the node: the look-up, the
// creation, the initialization, and the status once more.
func (c *fleet) bringUp(m *v1alpha1.Machine) {
	start := time.Now()
	if _, err := c.status(m); err == nil {
		c.t.Errorf("%s is there already", m.Name)
	}
	response := c.mustCreate(m)
	m.Spec.ProviderID = response.ProviderID
	if _, err := c.initialize(m); err != nil {
		c.t.Errorf("InitializeMachine: %v", err)
	}
	c.mu.Lock()
	c.took[m.Name] = time.Since(start)
	c.mu.Unlock()
	if _, err := c.status(m); err != nil {
		c.t.Errorf("GetMachineStatus: %v", err)
	}
}

// bringDown is what the manager does once the node is drained.
func (c *fleet) bringDown(m *v1alpha1.Machine) {
	m = c.deleted(m)
	request := &driver.GetMachineStatusRequest{Machine: m, MachineClass: c.class, Secret: c.secret}
	if _, err := c.driver.GetMachineStatus(c.t.Context(), request); err != nil {
		if decoded, _ := status.FromError(err); decoded.Code() != codes.NotFound {
			c.t.Errorf("GetMachineStatus: %v", err)
		}
	}
	if err := c.delete(m); err != nil {
		c.t.Errorf("DeleteMachine: %v", err)
	}
}

// callsPerMachine counts from the last time it was called.
func (c *fleet) callsPerMachine() float64 {
	c.t.Helper()
	total := 0
	counts := c.cloud.CallCounts()
	for _, count := range counts {
		total += count
	}
	c.cloud.ResetCalls()
	c.t.Logf("%d machines: %v", len(c.machines), counts)
	return float64(total) / float64(len(c.machines))
}

// overBoot are the times from the first call to the initialized server, without
// what the server itself took to boot, in the order of the machines.
func (c *fleet) overBoot() []time.Duration {
	boots := map[string]time.Duration{}
	for _, server := range c.cloud.Servers() {
		boots[server.Name] = server.LaunchedAt.Sub(server.CreatedAt)
	}
	var over []time.Duration
	for _, m := range c.machines {
		over = append(over, c.took[m.Name]-boots[m.Name])
	}
	return over
}

// afterTurn is for how long a read that has had its turn may wait: for itself and one write, each a
// fiftieth of a second by the process's rate limit.
const afterTurn = 2 * time.Second / 50

// peakReads is the greatest number of lists and GETs that the cloud saw begin within a second that
// is shorter by afterTurn.
func (c *fleet) peakReads() int { return c.peakReadsFrom(time.Time{}) }

// peakReadsFrom is that of the reads that began then or later.
func (c *fleet) peakReadsFrom(start time.Time) int {
	var began []time.Time
	for _, call := range c.cloud.Calls() {
		if call.Method == http.MethodGet && !call.StartedAt.Before(start) {
			began = append(began, call.StartedAt)
		}
	}
	slices.SortFunc(began, time.Time.Compare)
	peak, first := 0, 0
	for last := range began {
		for began[last].Sub(began[first]) >= time.Second-afterTurn {
			first++
		}
		peak = max(peak, last-first+1)
	}
	return peak
}

// wantFewCalls checks the calls since it was last called: how many begin within a second, and for each machine.
func (c *fleet) wantFewCalls(phase string, atMost float64) {
	c.t.Helper()
	if peak := c.peakReads(); peak >= 10 {
		c.t.Errorf("%s: %d reads within a second", phase, peak)
	}
	if calls := c.callsPerMachine(); calls > atMost {
		c.t.Errorf("%s: %.2f calls a machine, want at most %.1f", phase, calls, atMost)
	}
}

// keepOther makes a server that stays while the machines go, as those of other classes of
// the cluster do: without one the list of the cluster is empty in the end, and each server
// that goes last needs a GET.
func (c *fleet) keepOther() *v1alpha1.Machine {
	other := machine("stays-0001")
	other.Spec.ProviderID = c.mustCreate(other).ProviderID
	c.cloud.ResetCalls()
	return other
}

// serversByName counts the servers of each machine.
func (c *fleet) serversByName() map[string]int {
	count := map[string]int{}
	for _, server := range c.cloud.Servers() {
		count[server.Name]++
	}
	return count
}
