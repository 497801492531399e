// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"slices"
	"time"
)

// standStill lets the process stand still from now on, if it leads.
func (c *cluster) standStill(p *process, s stillness) {
	if s.length == 0 || c.running() != p || !p.halt(c.api.snapshot()) {
		return
	}
	c.world.log("%s STANDS STILL for %s", p.name, s.length)
	c.world.spawn(func() {
		if !c.outlast(p, s) { // nobody would see to it that it ends without its lease
			p.end("ENDS, since the run does")
		}
	})
}

// outlast lets come what comes of the stillness, each in its time; false if the run ends
// before.
func (c *cluster) outlast(p *process, s stillness) bool {
	type event struct {
		at time.Duration
		do func()
	}
	events := []event{{s.length, p.wake}, {s.length + s.fresh, p.catchUp}}
	if s.lost() {
		events = append(events,
			event{s.takeover, func() { c.succeed(p) }},
			event{max(s.length+s.notice, s.takeover), func() { p.end("sees that another leads, and ends") }})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	passed := time.Duration(0)
	for _, e := range events {
		if !c.world.sleep(e.at - passed) {
			return false
		}
		passed = e.at
		e.do()
	}
	return true
}

// succeed lets another process lead in place of one that stands still, or has just
// woken up.
func (c *cluster) succeed(p *process) {
	c.mu.Lock()
	leads := c.leader == p
	if leads {
		c.leader = nil
	}
	c.mu.Unlock()
	if leads {
		c.world.log("%s leads no more, another process does", p.name)
		c.lead()
	}
}
