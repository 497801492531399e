// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"golang.org/x/time/rate"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// process is one life of a sidecar. A crash ends its contexts, cuts it off the
// cloud, and makes its answers worthless.
type process struct {
	cluster *cluster
	driver  driver.Driver
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	crashed bool
}

func (c *cluster) newProcess() *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cluster: c, ctx: ctx, cancel: cancel}
	started := c.world.clock.Now()
	p.driver = provider.NewProvider(&spi.PluginSPIImpl{
		Config:    spi.Config{Endpoint: endpoint, TokenURL: endpoint + "/token"},
		Limiter:   rate.NewLimiter(50, 100),
		Transport: &wire{c.world, p},
		Jitter:    func() float64 { return 0.5 },
	}, provider.WithActingSince(func() time.Time { return started }))
	return p
}

const endpoint = "http://iaas.invalid"

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// crash ends the process, and starts a new one a little later.
func (p *process) crash(when string) {
	p.mu.Lock()
	if p.crashed {
		p.mu.Unlock()
		return
	}
	p.crashed = true
	p.mu.Unlock()
	p.cluster.world.log("%s CRASH %s", p.cluster.name, when)
	p.cancel()
	p.cluster.restart()
}

// restart replaces the process; there may be a pause in which there is none.
func (c *cluster) restart() {
	c.mu.Lock()
	c.process = nil
	c.generation++
	pause := between(random(c.world.plan.Seed, "restart", c.name, c.generation), time.Second, 10*time.Second)
	c.mu.Unlock()
	c.world.spawn(func() {
		if !c.world.sleep(pause) {
			return
		}
		c.api.refresh()
		c.mu.Lock()
		c.process = c.newProcess()
		c.mu.Unlock()
		c.world.log("%s starts again", c.name)
		c.collectSoon()
	})
}

// running returns the process; nil while there is none.
func (c *cluster) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}
