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
	Prefixes    []string `json:"prefixes"`
	Gateway     string   `json:"gateway"`
	Nameservers []string `json:"nameservers"`
}

func showNetwork(n *network, _ time.Time) networkView {
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
	return &networkFamilyView{Prefixes: []string{p.prefix.String()}, Gateway: p.gateway.String(), Nameservers: orEmpty(nameservers)}
}

func (c *Cloud) listNetworks(r *request) (any, *apiError) {
	return listed(c, r, &c.networks, showNetwork)
}

func (c *Cloud) getNetwork(r *request) (any, *apiError) {
	return shown(c, r, &c.networks, namedNetwork, showNetwork)
}
