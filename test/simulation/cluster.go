// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// cluster has a control plane and, unless it has just crashed, a process that leads.
type cluster struct {
	world *world
	name  string
	api   *apiServer
	keys  [][]byte
	// lead makes a new process the leader. It is handed in: who makes a process needs what
	// ends one.
	lead func()

	mu sync.Mutex
	// leader is the process that leads; nil while none does.
	leader *process
	// processes are those that may live, started and restarts how many there were.
	processes         []*process
	started, restarts int
	key               []byte
	diskSize          int
	// place is where the class and its Secret say that servers are.
	place place
	// edits counts what users have edited by hand.
	edits int
	// restored are the servers whose labels users have set again, or are about to.
	restored map[string]bool
}

// crash ends the process, and starts a new one a little later unless another leads.
func (c *cluster) crash(p *process, when string) {
	if p.end("CRASH " + when) {
		c.restart(p)
	}
}

// restart replaces the process if it led; there may be a time in which none does.
func (c *cluster) restart(ended *process) {
	c.mu.Lock()
	if c.leader != ended {
		c.mu.Unlock()
		return
	}
	c.leader = nil
	c.restarts++
	gap := between(random(c.world.plan.Seed, "restart", c.name, c.restarts), time.Second, 10*time.Second)
	c.mu.Unlock()
	c.world.spawn(func() {
		if !c.world.sleep(gap) {
			return
		}
		c.world.log("%s starts again", c.name)
		c.lead()
	})
}

// running returns the process that leads; nil while none does.
func (c *cluster) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// living are all processes that have not ended: the leader, and those that have yet
// to see that they do not lead any more.
func (c *cluster) living() []*process {
	c.mu.Lock()
	all := slices.Clone(c.processes)
	c.mu.Unlock()
	return slices.DeleteFunc(all, (*process).dead)
}

// inputs are the class and its Secret as they are now.
func (c *cluster) inputs(class string) (*v1alpha1.MachineClass, *corev1.Secret) {
	c.mu.Lock()
	key, size, at := c.key, c.diskSize, c.place
	c.mu.Unlock()
	if at.key != nil {
		key = at.key
	}
	return classAndSecret(c.name, class, at, key, size)
}

// collectSoon asks for an orphan run, as the end of a Machine does.
func (c *cluster) collectSoon() {
	for _, p := range c.living() {
		p.collectSoon()
	}
}
