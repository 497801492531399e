// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

type networkView struct {
	ID        string             `json:"id"`
	Name      string             `json:"name"`
	Status    string             `json:"status"`
	Routed    bool               `json:"routed"`
	DHCP      bool               `json:"dhcp"`
	IPv4      *networkFamilyView `json:"ipv4,omitempty"`
	IPv6      *networkFamilyView `json:"ipv6,omitempty"`
	Labels    map[string]string  `json:"labels"`
	CreatedAt time.Time          `json:"createdAt"`
	UpdatedAt time.Time          `json:"updatedAt"`
}

type networkFamilyView struct {
	Prefixes []string `json:"prefixes"`
	// Gateway is null for a network without one.
	Gateway     *string  `json:"gateway"`
	Nameservers []string `json:"nameservers"`
}

func showNetwork(n *network) networkView {
	return networkView{
		ID: n.ID, Name: n.Name, Status: "CREATED", Routed: !n.Isolated, DHCP: !n.DHCPDisabled,
		IPv4: showFamily(n.v4, n.IPv4Nameservers), IPv6: showFamily(n.v6, n.IPv6Nameservers),
		Labels: orEmptyMap(n.Labels), CreatedAt: n.CreatedAt.UTC(), UpdatedAt: n.UpdatedAt.UTC(),
	}
}

func showFamily(p *addressPool, nameservers []string) *networkFamilyView {
	if p == nil {
		return nil
	}
	view := &networkFamilyView{Prefixes: []string{p.prefix.String()}, Nameservers: orEmpty(nameservers)}
	if p.gateway.IsValid() {
		gateway := p.gateway.String()
		view.Gateway = &gateway
	}
	return view
}

// withNetwork runs f on the network that the path names.
func (c *Cloud) withNetwork(r *request, f func(n *network, _ time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		var network *network
		if network, err = c.networkOf(r); err == nil {
			err = f(network, now)
		}
	})
	return err
}

func (c *Cloud) listNetworks(r *request) (any, *apiError) {
	return listed(c, r, &c.networks, func(n *network, _ time.Time) (any, map[string]string, bool) {
		return showNetwork(n), n.Labels, r.covers(n.ProjectID, n.Region)
	})
}

func (c *Cloud) getNetwork(r *request) (view any, err *apiError) {
	err = c.withNetwork(r, func(n *network, _ time.Time) *apiError {
		view = showNetwork(n)
		return nil
	})
	return view, err
}
