// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// newCluster makes a cluster with a process that leads. It begins its work with begin.
func newCluster(w *world, api *apiServer, keys [][]byte) *cluster {
	c := &cluster{world: w, name: api.cluster, api: api, keys: keys, key: keys[0], diskSize: 20, place: ownPlace, restored: map[string]bool{}}
	c.lead = func() {
		p := c.newProcess()
		c.mu.Lock()
		c.leader = p
		c.mu.Unlock()
		c.begin(p)
	}
	c.leader = c.newProcess()
	return c
}

func (c *cluster) newProcess() *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		world: c.world, ctx: ctx, cancel: cancel, clock: clock.RealClock{}, tended: map[*record]bool{}, turns: map[string]chan struct{}{},
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
		Transport: &wire{c, p},
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

// begin lets the manager's controllers do their work.
func (c *cluster) begin(p *process) {
	if c.world.plan.Collects {
		p.collectSoon()
		c.world.spawn(func() { c.collector(p, random(c.world.plan.Seed, "collector", p.name)) })
	}
	for _, r := range c.api.all() {
		c.tend(p, r)
	}
}
