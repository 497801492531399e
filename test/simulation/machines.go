// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

func machineName(i int) string { return "machine-" + "abcdefghijklmnopqrstuvwxyz"[i:i+1] }

// want makes a new Machine unless there is one of that name.
func (c *cluster) want(name, class string) { c.add(name, class, func(*v1alpha1.Machine) {}) }

// add makes a Machine, as change makes it, and the care for it of those that take themselves
// for the leader. It returns nil if there is one of that name.
func (c *cluster) add(name, class string, change func(*v1alpha1.Machine)) *record {
	record, made := c.api.create(name, class, change)
	if !made {
		return nil
	}
	c.world.mu.Lock()
	c.world.lives++
	c.world.mu.Unlock()
	c.world.log("%s %s is wanted, of %s", c.name, name, class)
	for _, p := range c.living() {
		c.tend(p, record)
	}
	return record
}

// unwant deletes a Machine.
func (c *cluster) unwant(r *record) {
	if m, exists := c.api.latestOf(r); exists && m.DeletionTimestamp == nil {
		c.world.log("%s %s is not wanted any more", c.name, m.Name)
		c.api.markDeleted(r)
	}
}

func (c *cluster) find(name string) *record {
	for _, r := range c.api.all() {
		if m, _ := c.api.latestOf(r); m.Name == name {
			return r
		}
	}
	return nil
}

// replaceFailed is what a MachineSet does.
func (c *cluster) replaceFailed() {
	for _, r := range c.api.all() {
		m, exists := c.api.latestOf(r)
		if exists && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && m.DeletionTimestamp == nil {
			c.world.checkFailure(owner{c.name, m.Name})
			c.unwant(r)
			c.want(m.Name+"r", m.Spec.Class.Name)
		}
	}
}

// machineSet replaces what has failed.
func (c *cluster) machineSet() {
	for c.world.sleep(10 * time.Second) {
		c.replaceFailed()
	}
}
