// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"k8s.io/utils/clock"
)

// process is one life of a sidecar: the manager's controllers and the driver. A
// crash ends its contexts, cuts it off the cloud, and makes its answers worthless.
type process struct {
	world *world
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

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
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
	p.world.log("%s %s", p.name, how)
	p.cancel()
	p.wake()
	return true
}

// halt begins a stillness, in which the process keeps the present in mind; false if it has
// not come to terms with the last one.
func (p *process) halt(present snapshot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stops == nil || p.crashed || p.past != nil {
		return false
	}
	p.still, p.past = make(chan struct{}), present
	p.stops.stop()
	return true
}

// wake ends a stillness.
func (p *process) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.still == nil {
		return
	}
	if !p.crashed {
		p.world.log("%s goes on", p.name)
	}
	p.stops.resume()
	close(p.still)
	p.still = nil
}

// catchUp lets the process's cache follow the API server again.
func (p *process) catchUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = nil
}

// standing says whether the process stands still.
func (p *process) standing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.still != nil
}

// awake waits until the process does not stand still; false if it has ended.
func (p *process) awake() bool {
	for {
		p.mu.Lock()
		still, crashed := p.still, p.crashed
		p.mu.Unlock()
		if still == nil {
			return !crashed
		}
		<-still
	}
}

// remembers is what the process takes for the present though it is not; nil if it
// knows better.
func (p *process) remembers() snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.past
}

// wait is how a goroutine of the process lets time pass, or waits to be woken; false
// once the process, or the run, has ended.
func (p *process) wait(gap time.Duration, woken <-chan struct{}) bool {
	timer := p.clock.NewTimer(gap)
	defer timer.Stop()
	select {
	case <-p.world.ctx.Done():
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

func (p *process) collectSoon() {
	select {
	case p.collect <- struct{}{}:
	default:
	}
}
