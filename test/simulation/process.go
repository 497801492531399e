// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// process is one life of a sidecar: the manager's controllers and the driver. A
// crash ends its contexts, cuts it off the cloud, and makes its answers worthless.
type process struct {
	cluster *cluster
	// name is the cluster's, with a number from the second process on.
	name   string
	driver driver.Driver
	ctx    context.Context
	cancel context.CancelFunc
	clock  clock.WithTicker
	// stops is the clock again if it can stop; else nil.
	stops *processClock
	// collect asks for an orphan run.
	collect chan struct{}
	// collecting is held by an orphan run. It is no mutex: time does not pass in a
	// bubble while somebody waits for one.
	collecting chan struct{}

	mu      sync.Mutex
	crashed bool
	// turns has a channel of one place for each name of a Machine: the manager's queue hands
	// out a name to one worker at a time.
	turns map[string]chan struct{}
	// tended are the Machines that it takes care of.
	tended map[*record]bool
	// still is open while the process stands still, else nil.
	still chan struct{}
	// past is what the process still takes for the present after it stood still; nil
	// if its cache follows the API server.
	past snapshot
}

const endpoint = "http://iaas.invalid"

func (c *cluster) newProcess() *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		cluster: c, ctx: ctx, cancel: cancel, clock: clock.RealClock{}, tended: map[*record]bool{}, turns: map[string]chan struct{}{},
		collect: make(chan struct{}, 1), collecting: make(chan struct{}, 1),
	}
	if c.world.plan.standsStill() {
		p.stops = &processClock{}
		p.clock = p.stops
	}
	started := p.clock.Now()
	sessions := &spi.PluginSPIImpl{
		Config:    spi.Config{Endpoint: endpoint, TokenURL: endpoint + "/token"},
		Limiter:   rate.NewLimiter(50, 100),
		Transport: &wire{c.world, p},
		Clock:     p.clock,
		Jitter:    func() float64 { return 0.5 },
	}
	if c.world.plan.standsStill() {
		sessions.Fence = newFence(p.clock)
		c.world.fences.Go(func() { sessions.Fence.Run(ctx) })
	}
	p.driver = provider.NewProvider(sessions, provider.WithClock(p.clock), provider.WithActingSince(func() time.Time { return started }))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(slices.DeleteFunc(c.processes, (*process).dead), p)
	p.name = c.name
	if c.started++; c.started > 1 {
		p.name = fmt.Sprintf("%s.%d", c.name, c.started)
	}
	return p
}

// lead makes a new process the cluster's leader.
func (c *cluster) lead() {
	p := c.newProcess()
	c.mu.Lock()
	c.leader = p
	c.mu.Unlock()
	p.begin()
}

// begin lets the manager's controllers do their work.
func (p *process) begin() {
	if p.cluster.world.plan.Collects {
		p.collectSoon()
		p.cluster.world.spawn(func() { p.collector(random(p.cluster.world.plan.Seed, "collector", p.name)) })
	}
	for _, r := range p.cluster.api.all() {
		p.tend(r)
	}
}

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// crash ends the process, and starts a new one a little later unless another leads.
func (p *process) crash(when string) {
	if p.end("CRASH " + when) {
		p.cluster.restart(p)
	}
}

// end ends the process; false if it has ended.
func (p *process) end(how string) bool {
	p.mu.Lock()
	ended := p.crashed
	p.crashed = true
	p.mu.Unlock()
	if ended {
		return false
	}
	p.cluster.world.log("%s %s", p.name, how)
	p.cancel()
	p.wake()
	return true
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

// wait is how a goroutine of the process lets time pass, or waits to be woken; false
// once the process, or the run, has ended.
func (p *process) wait(gap time.Duration, woken <-chan struct{}) bool {
	timer := p.clock.NewTimer(gap)
	defer timer.Stop()
	select {
	case <-p.cluster.world.ctx.Done():
		return false
	case <-p.ctx.Done():
		return false
	case <-woken:
	case <-timer.C():
	}
	return p.awake()
}

// inTurn makes a pass once no other is made for a Machine of this name.
func (p *process) inTurn(name string, pass func() time.Duration) time.Duration {
	p.mu.Lock()
	turn, known := p.turns[name]
	if !known {
		turn = make(chan struct{}, 1)
		p.turns[name] = turn
	}
	p.mu.Unlock()
	turn <- struct{}{}
	defer func() { <-turn }()
	if !p.awake() {
		return 0
	}
	return pass()
}

// errStoodStill is what a request meets that is begun while the process stands still.
// Only the end of a context's time can do that, which the process's clock does not
// stop. To send it once the process wakes up would be to send what has been
// checked before the pause.
var errStoodStill = fmt.Errorf("the process stood still: %w", io.ErrUnexpectedEOF)
