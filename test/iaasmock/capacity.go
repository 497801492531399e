// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "maps"

// noHost is the errorMessage of a server without a host. CreateServer succeeds; the
// server shows the message when it ends in ERROR.
const noHost = "No valid host was found. There are not enough hosts available."

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

// hasRoom reports whether one more server fits. A server counts until it is gone, also
// while it is stopped or deallocated.
func (c *Cloud) hasRoom(machineType, zone string) bool {
	for limited, n := range c.limits.capacity {
		if limited.covers(machineType, zone) && c.countServers(limited) >= n {
			return false
		}
	}
	return true
}

func (c *Cloud) countServers(where capacityKey) int {
	count := 0
	for s := range c.servers.each() {
		if !s.withoutCapacity && where.covers(s.MachineType, s.AvailabilityZone) {
			count++
		}
	}
	return count
}
