// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// users change their minds, for as long as the fault period lasts.
func (c *cluster) users(rng *rand.Rand, until time.Time) {
	for i := range c.world.plan.Machines {
		c.want(machineName(i), pick(rng, classA, classB))
	}
	for {
		gap := between(rng, time.Second, 90*time.Second)
		if c.world.clock.Now().Add(gap).After(until) || !c.world.sleep(gap) {
			return
		}
		if c.world.plan.Edit != "" && rng.IntN(2) == 0 {
			c.edit(rng, until)
			continue
		}
		name := machineName(rng.IntN(c.world.plan.Machines))
		class := pick(rng, classA, classB)
		switch rng.IntN(4) {
		case 0:
			c.mu.Lock()
			c.diskSize = 20 + rng.IntN(20) // a class of the same name that is another
			c.mu.Unlock()
		case 1, 2:
			if found := c.find(name); found != nil {
				c.unwant(found)
			}
		default:
			c.want(name, class) // again, by the same name
		}
	}
}

// rotate replaces the key; the old one is revoked a little before or after.
func (c *cluster) rotate(rng *rand.Rand) {
	c.mu.Lock()
	old, fresh := c.keys[0], c.keys[1]
	c.keys = [][]byte{fresh, old}
	c.mu.Unlock()
	if err := c.world.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, fresh); err != nil {
		panic(err)
	}
	revoke := func() { _ = c.world.cloud.RevokeServiceAccountKey(old) }
	handOut := func() {
		c.mu.Lock()
		c.key = fresh
		c.mu.Unlock()
	}
	first, second := handOut, revoke
	if rng.IntN(2) == 0 {
		first, second = revoke, handOut
	}
	c.world.log("%s rotates its key", c.name)
	first()
	c.world.sleep(between(rng, 0, 40*time.Second))
	second()
	c.world.log("%s has rotated its key", c.name)
}
