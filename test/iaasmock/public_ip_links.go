// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "time"

// addPublicIPToServer attaches the IP to the server's first NIC without one.
func (c *Cloud) addPublicIPToServer(r *request) (any, *apiError) {
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		ip, err := c.publicIPOf(r)
		if err != nil {
			return err
		}
		status := s.stateAt(now).status
		if ip.NICID != "" || status == StatusCreating || status == StatusDeleting || status == StatusError {
			// Source: the document: 409 of AddPublicIpToServer; the states are the mock's choice.
			return conflict()
		}
		for _, id := range s.NICIDs {
			if nic, ok := c.nics.get(id); ok && nic.publicIPID == "" {
				associate(ip, nic)
				return nil
			}
		}
		// Source: the document: 409 of AddPublicIpToServer.
		return conflict()
	})
}

func (c *Cloud) removePublicIPFromServer(r *request) (any, *apiError) {
	return nil, c.withServer(r, func(s *server, _ time.Time) *apiError {
		ip, err := c.publicIPOf(r)
		if err != nil {
			return err
		}
		if nic, ok := c.nics.get(ip.NICID); !ok || nic.ServerID != s.ID {
			return notFound("public ip")
		}
		c.dissociate(ip)
		return nil
	})
}

func associate(p *PublicIP, n *nic) {
	p.NICID, n.PublicIP, n.publicIPID = n.ID, p.IP, p.ID
}

func (c *Cloud) dissociate(p *PublicIP) {
	if nic, ok := c.nics.get(p.NICID); ok {
		nic.PublicIP, nic.publicIPID = "", ""
	}
	p.NICID = ""
}

// freePublicIP detaches the NIC's public IP, if it has one.
func (c *Cloud) freePublicIP(n *nic) {
	if ip, ok := c.publicIPs.get(n.publicIPID); ok {
		c.dissociate(ip)
	}
}
