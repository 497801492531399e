// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"slices"
	"time"
)

// rewirable are the states in which NICs come and go; a deallocated server has
// no host to plug them into.
var rewirable = []string{StatusActive, StatusInactive}

// withRewirable is withServer for changes of its NICs. In other states it answers
// as the document allows, with a 409 for AddNicToServer only.
func (c *Cloud) withRewirable(r *request, f func(s *server, now time.Time) *apiError) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		if status := s.stateAt(now).status; !slices.Contains(rewirable, status) {
			return badRequest("server is in status %s", status)
		}
		return f(s, now)
	})
}

func (c *Cloud) addNICToServer(r *request) (any, *apiError) {
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		nic, err := c.nicOf(r, r.vars["nicId"])
		if err != nil {
			return err
		}
		if nic.ServerID != "" || !slices.Contains(rewirable, s.stateAt(now).status) {
			return conflict()
		}
		s.plug(nic, now)
		return nil
	})
}

func (s *server) plug(n *nic, now time.Time) {
	n.ServerID = s.ID
	s.NICIDs, s.UpdatedAt = withItem(s.NICIDs, n.ID), now
}

// removeNICFromServer keeps the NIC, also one that was made for the server: only
// RemoveNetworkFromServer is documented to delete. Its public IP stays with it.
func (c *Cloud) removeNICFromServer(r *request) (any, *apiError) {
	return nil, c.withRewirable(r, func(s *server, now time.Time) *apiError {
		nic, err := c.nicOf(r, r.vars["nicId"])
		if err != nil {
			return err
		}
		if nic.ServerID != s.ID {
			return notFound("network interface")
		}
		nic.ServerID, nic.MadeByServer = "", false
		s.NICIDs, s.UpdatedAt = withoutItem(s.NICIDs, nic.ID), now
		return nil
	})
}

// addNetworkToServer makes a NIC in the network that goes with the server. It
// gets the server's security groups.
func (c *Cloud) addNetworkToServer(r *request) (any, *apiError) {
	return nil, c.withRewirable(r, func(s *server, now time.Time) *apiError {
		network, err := c.networkOf(r, r.vars["networkId"])
		if err != nil {
			return err
		}
		if err := c.allowNIC(http.StatusForbidden, s.ProjectID, s.Region); err != nil {
			return err
		}
		nic := &nic{NIC: NIC{
			ID: c.newID(), ProjectID: s.ProjectID, Region: s.Region, NetworkID: network.ID,
			SecurityGroups: s.SecurityGroups, MadeByServer: true,
		}}
		if network.assign(&nic.NIC) != nil {
			return badRequest("No more IP addresses available on the network")
		}
		c.nics.put(nic.ID, nic)
		c.totals.NICsCreated++
		s.plug(nic, now)
		return nil
	})
}

// removeNetworkFromServer deletes the NICs that it detaches.
func (c *Cloud) removeNetworkFromServer(r *request) (any, *apiError) {
	return nil, c.withRewirable(r, func(s *server, now time.Time) *apiError {
		network, err := c.networkOf(r, r.vars["networkId"])
		if err != nil {
			return err
		}
		kept := make([]string, 0, len(s.NICIDs))
		for _, id := range s.NICIDs {
			if nic, ok := c.nics.get(id); ok && nic.NetworkID == network.ID {
				c.removeNIC(nic)
				continue
			}
			kept = append(kept, id)
		}
		if len(kept) == len(s.NICIDs) {
			return notFound("network interface")
		}
		s.NICIDs, s.UpdatedAt = kept, now
		return nil
	})
}
