// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"math/rand/v2"
	"regexp"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// users create and delete Machines, and change classes, until the fault period is over.
func (c *cluster) users(rng *rand.Rand, until time.Time) {
	for i := range c.world.plan.Machines {
		c.want(machineName(i), pick(rng, classA, classB))
	}
	for {
		gap := between(rng, time.Second, 90*time.Second)
		if c.world.clock.Now().Add(gap).After(until) || !c.world.sleep(gap) {
			return
		}
		name := machineName(rng.IntN(c.world.plan.Machines))
		class := pick(rng, classA, classB)
		switch rng.IntN(4) {
		case 0:
			size := 20 + rng.IntN(20)
			c.change(func() { c.diskSize = size }) // a changed class with the same name
		case 1, 2:
			if found := c.machine(name); found != nil {
				c.unwant(found)
			}
		default:
			c.want(name, class) // the name may be used again
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
	handOut := func() { c.change(func() { c.key = fresh }) }
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

// missingLabel finds the server and the label that a NotOurs error asks for.
var missingLabel = regexp.MustCompile(`server (\S+) .* its label (\S+) is missing: must be "(\S+)"`)

// restoreLabels sets the label that a NotOurs error asks for, after a while. The error may also name a server that is
// not the Machine's.
func (c *cluster) restoreLabels(err error) {
	if err == nil {
		return
	}
	found := missingLabel.FindStringSubmatch(err.Error())
	if found == nil || !c.made(found[1]) {
		return
	}
	id, wanted := found[1], found[2]+"="+found[3]
	labels := map[string]any{found[2]: found[3]}
	c.mu.Lock()
	known := c.restored[id+wanted]
	c.restored[id+wanted] = true
	c.mu.Unlock()
	if known {
		return
	}
	c.world.spawn(func() {
		rng := random(c.world.plan.Seed, "labels", c.world.trace.name(id))
		if c.world.sleep(between(rng, 10*time.Second, 5*time.Minute)) {
			c.label(id, labels)
		}
	})
}

// made reports whether a server was made for a Machine of the cluster, and not by OpenStack's provider.
func (c *cluster) made(id string) bool {
	server, exists := c.world.cloud.Server(id)
	return exists && ownerOf(&server).cluster == c.name && server.Metadata[openStackTag+c.name] == ""
}

// label sets labels of a server; it retries until the cloud accepts them.
func (c *cluster) label(id string, labels map[string]any) {
	w := c.world
	change := iaas.UpdateServerPayload{Labels: labels}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		request := w.foreign.api.UpdateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id)
		_, err := request.UpdateServerPayload(change).Execute()
		cancel()
		if err == nil {
			w.log("%s labels %s by hand: %v", c.name, id, labels)
			return
		}
		if _, exists := w.cloud.Server(id); !exists || !w.sleep(5*time.Second) {
			return
		}
	}
}
