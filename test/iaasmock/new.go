// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/token"
)

// New returns a Cloud with DefaultCatalogue unless WithCatalogue is given. It panics on a
// catalogue that contradicts itself, such as one with a NIC in a network that does not
// exist.
func New(opts ...Option) *Cloud {
	c := &Cloud{
		settings: defaultSettings(),
		deleting: map[string]*server{},
	}
	for _, opt := range opts {
		opt(&c.settings)
	}
	c.tokens = token.NewIssuer(c.clock, c.tokenLifetime)
	c.latencies, c.boots, c.ids = c.random.lockedStream("latency"), c.random.lockedStream("boot"), c.random.lockedStream("ids")
	c.replicas, c.others = c.random.lockedStream("replicas"), c.random.lockedStream("others")
	c.keepGoneFor = slices.Max(append(slices.Clone(c.replicaLags), c.listLag))
	c.admin = c.adminHandler()
	if err := c.loadCatalogue(); err != nil {
		panic("iaasmock: catalogue: " + err.Error())
	}
	return c
}

func (c *Cloud) loadCatalogue() error {
	c.startedAt = c.clock.Now()
	c.shelves = c.catalogue.shelves(c.startedAt)
	c.loadDisks(c.startedAt)
	return c.loadNetworks(c.startedAt)
}

func (c *Cloud) loadNetworks(now time.Time) error {
	for _, n := range c.catalogue.Networks {
		made, err := newNetwork(n, now)
		if err != nil {
			return err
		}
		c.networks.put(n.ID, made)
	}
	for _, original := range c.catalogue.NICs {
		nic := &nic{NIC: original.clone()}
		network, ok := c.networks.get(nic.NetworkID)
		if !ok {
			return fmt.Errorf("NIC %s: no network %s", nic.ID, nic.NetworkID)
		}
		if address := network.foreign(&nic.NIC); address != "" {
			return fmt.Errorf("NIC %s: %s is not in network %s", nic.ID, address, nic.NetworkID)
		}
		if err := network.assign(&nic.NIC); err != nil {
			return fmt.Errorf("NIC %s: %w", nic.ID, err)
		}
		c.nics.put(nic.ID, nic)
	}
	return nil
}

func (c *Cloud) loadDisks(now time.Time) {
	for _, original := range c.catalogue.Volumes {
		volume := original.clone()
		volume.Status = cmp.Or(volume.Status, VolumeAvailable)
		volume.CreatedAt, volume.UpdatedAt = now, now
		c.volumes.put(volume.ID, &volume)
	}
}
