// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "maps"

// noHost is the errorMessage of a server that found no place. The API has no
// answer for that: it shows only in the server, later.
const noHost = "No valid host was found. There are not enough hosts available."

// capacityKey says where capacity is counted; "" is any.
type capacityKey struct {
	machineType, zone string
}

// WithCapacity lets there be room for no more than n servers of this machine
// type in this zone. "" stands for any: with both, n is how many servers there
// can be at all. All limits that fit a server hold. A server without room is
// made all the same and ends in ERROR; so does the cloud. Default: no limits.
func WithCapacity(machineType, zone string, n int) Option {
	return func(s *settings) {
		s.limits.capacity = maps.Clone(s.limits.capacity)
		if s.limits.capacity == nil {
			s.limits.capacity = map[capacityKey]int{}
		}
		s.limits.capacity[capacityKey{machineType, zone}] = n
	}
}

// SetCapacity is WithCapacity for a cloud that runs. A negative n takes the
// limit away. Servers that have room keep it; those that ended in ERROR get
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

// covers says whether a limit for p counts servers of this type and zone.
func (p capacityKey) covers(machineType, zone string) bool {
	return (p.machineType == "" || p.machineType == machineType) && (p.zone == "" || p.zone == zone)
}

// hasRoom for one more server. A server takes its place until it is gone, also
// while it is stopped or deallocated. except is not counted.
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
