// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "maps"

// noHost is the errorMessage of a server without a host. CreateServer succeeds; the
// server shows the message when it ends in ERROR.
const noHost = "No valid host was found. There are not enough hosts available."

// capacityKey selects the servers that a limit counts; "" matches any.
type capacityKey struct {
	machineType, zone string
}

// WithCapacity limits how many servers of a machine type fit into a zone, over all
// projects. "" matches any. A server has to fit under every limit that matches it;
// otherwise CreateServer still succeeds and the server ends in ERROR, as on STACKIT.
// Default: no limits.
func WithCapacity(machineType, zone string, n int) Option {
	return func(s *settings) {
		s.limits.capacity = maps.Clone(s.limits.capacity)
		if s.limits.capacity == nil {
			s.limits.capacity = map[capacityKey]int{}
		}
		s.limits.capacity[capacityKey{machineType, zone}] = n
	}
}

// SetCapacity changes a limit of WithCapacity at run time. A negative n removes the
// limit. Servers that use capacity keep it; those that ended in ERROR for lack of it get
// none.
func (c *Cloud) SetCapacity(machineType, zone string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limits := maps.Clone(c.limits.capacity)
	if limits == nil {
		limits = map[capacityKey]int{}
	}
	limits[capacityKey{machineType, zone}] = n
	if n < 0 {
		delete(limits, capacityKey{machineType, zone})
	}
	c.limits.capacity = limits
}

// covers reports whether a limit for k counts servers of this type and zone.
func (k capacityKey) covers(machineType, zone string) bool {
	return (k.machineType == "" || k.machineType == machineType) && (k.zone == "" || k.zone == zone)
}

// hasRoom reports whether one more server fits. A server counts until it is gone, also
// while it is stopped or deallocated; except is not counted.
func (c *Cloud) hasRoom(machineType, zone string, except *server) bool {
	for limited, n := range c.limits.capacity {
		if limited.covers(machineType, zone) && c.countServers(limited, except) >= n {
			return false
		}
	}
	return true
}

func (c *Cloud) countServers(where capacityKey, except *server) int {
	count := 0
	for s := range c.servers.each() {
		if s != except && !s.withoutCapacity && where.covers(s.MachineType, s.AvailabilityZone) {
			count++
		}
	}
	return count
}
