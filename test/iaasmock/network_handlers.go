// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"fmt"
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

// createNetwork makes a network that is CREATED at once. Without a prefix it gets one of its own.
func (c *Cloud) createNetwork(r *request) (view any, err *apiError) {
	var payload struct {
		Name string `json:"name"`
		DHCP *bool  `json:"dhcp"`
		IPv4 struct {
			Prefix       string   `json:"prefix"`
			PrefixLength int      `json:"prefixLength"`
			Nameservers  []string `json:"nameservers"`
		} `json:"ipv4"`
		Labels map[string]any `json:"labels"`
		Routed *bool          `json:"routed"`
	}
	if err := r.decode(&payload); err != nil {
		return nil, err
	}
	networkLabels, err := mergeLabels(nil, payload.Labels)
	if err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		if err = c.allowNetwork(r.project(), r.region()); err != nil {
			return
		}
		c.networksMade++
		made, problem := newNetwork(Network{
			ID: c.newID(), ProjectID: r.project(), Region: r.region(), Name: payload.Name, Labels: networkLabels,
			IPv4Prefix:      cmp.Or(payload.IPv4.Prefix, nextPrefix(c.networksMade, payload.IPv4.PrefixLength)),
			IPv4Nameservers: payload.IPv4.Nameservers,
			DHCPDisabled:    payload.DHCP != nil && !*payload.DHCP, Isolated: payload.Routed != nil && !*payload.Routed,
		}, now)
		if problem != nil {
			// Source: the document: the prefix is a CIDR.
			err = badRequest("%v", problem)
			return
		}
		c.networks.put(made.ID, made)
		view = showNetwork(made, now)
	})
	return view, err
}

// nextPrefix is the prefix of the network that a call made as the number-th; length 0 is 24.
func nextPrefix(number, length int) string {
	return fmt.Sprintf("10.%d.%d.0/%d", 128+number/256%128, number%256, cmp.Or(length, 24))
}

func (c *Cloud) deleteNetwork(r *request) (any, *apiError) {
	return nil, onNamed(c, r, &c.networks, namedNetwork, func(network *network, _ time.Time) *apiError {
		if count(c.nics.each(), func(n *nic) bool { return n.NetworkID == network.ID }) > 0 {
			// Source: the document: 409 of DeleteNetwork.
			return conflict()
		}
		c.networks.remove(network.ID)
		return nil
	})
}
