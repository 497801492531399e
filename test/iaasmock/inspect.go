// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"time"
)

// Servers returns the servers that exist now, DELETING ones included, in the
// order they were created.
func (c *Cloud) Servers() []Server {
	var servers []Server
	c.locked(func(now time.Time) {
		for _, s := range c.servers.all() {
			servers = append(servers, s.viewAt(now).clone())
		}
	})
	return servers
}

// Server returns the server with this ID if it exists now.
func (c *Cloud) Server(id string) (Server, bool) {
	var found Server
	var ok bool
	c.locked(func(now time.Time) {
		var s *server
		if s, ok = c.servers.get(id); ok {
			found = s.viewAt(now).clone()
		}
	})
	return found, ok
}

// NICs returns the NICs that exist now, the catalogue's included.
func (c *Cloud) NICs() []NIC {
	var nics []NIC
	c.locked(func(now time.Time) {
		for _, nic := range c.nics.all() {
			nics = append(nics, nic.viewAt(now).clone())
		}
	})
	return nics
}

// Volumes returns the volumes that exist now, the catalogue's included.
func (c *Cloud) Volumes() []Volume {
	var volumes []Volume
	c.locked(func(time.Time) {
		for _, volume := range c.volumes.all() {
			volumes = append(volumes, volume.clone())
		}
	})
	return volumes
}

// History returns what was ever created and deleted.
func (c *Cloud) History() Totals {
	var totals Totals
	c.locked(func(time.Time) { totals = c.totals })
	return totals
}

// SetServerStatus puts a server into a state, with an errorMessage if that is
// not empty. It stays there until a call through the API changes it; a deletion
// or action in progress is given up. Lists that lag show it later.
func (c *Cloud) SetServerStatus(id, status, errorMessage string) error {
	err := fmt.Errorf("no server %s", id)
	c.locked(func(now time.Time) {
		if s, ok := c.servers.get(id); ok {
			s.turn(now, status, errorMessage, outcome{})
			err = nil
		}
	})
	return err
}

// RemoveServer makes a server go at once, as if someone else had deleted it
// some time ago. What belongs to it goes or stays as always.
func (c *Cloud) RemoveServer(id string) error {
	err := fmt.Errorf("no server %s", id)
	c.locked(func(now time.Time) {
		if s, ok := c.servers.get(id); ok {
			c.remove(s, now)
			err = nil
		}
	})
	return err
}
