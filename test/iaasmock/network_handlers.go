// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// networkPayload is the body of CreateNetwork and PartialUpdateNetwork.
type networkPayload struct {
	Name           *string               `json:"name"`
	DHCP           *bool                 `json:"dhcp"`
	Routed         *bool                 `json:"routed"`
	Labels         map[string]any        `json:"labels"`
	RoutingTableID string                `json:"routingTableId"`
	VPCID          string                `json:"vpcId"`
	IPv4           *networkFamilyPayload `json:"ipv4"`
	IPv6           *networkFamilyPayload `json:"ipv6"`
}

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

func showNetwork(n *network, now time.Time) networkView {
	return networkView{
		ID: n.ID, Name: n.Name, Status: n.statusAt(now), Routed: !n.Isolated, DHCP: !n.DHCPDisabled,
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
func (c *Cloud) withNetwork(r *request, f func(n *network, now time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		var network *network
		if network, err = c.networkOf(r); err == nil {
			err = f(network, now)
		}
	})
	return err
}

func (c *Cloud) listNetworks(r *request) (any, *apiError) {
	return listed(c, r, &c.networks, func(n *network, now time.Time) (any, map[string]string, bool) {
		return showNetwork(n, now), n.Labels, r.covers(n.ProjectID, n.Region)
	})
}

func (c *Cloud) getNetwork(r *request) (view any, err *apiError) {
	err = c.withNetwork(r, func(n *network, now time.Time) *apiError {
		view = showNetwork(n, now)
		return nil
	})
	return view, err
}

func (c *Cloud) createNetwork(r *request) (view any, err *apiError) {
	var payload networkPayload
	if err := r.decode("CreateNetworkPayload", schema.CreateNetwork, &payload); err != nil {
		return nil, err
	}
	if err := c.checkReferences(payload); err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		if err = c.allowNetwork(r.project(), r.region()); err != nil {
			return
		}
		wanted := Network{ID: c.ids.uuid(), ProjectID: r.project(), Region: r.region()}
		if wanted.IPv4Prefix, wanted.IPv6Prefix, err = c.choosePrefixes(r, payload); err != nil {
			return
		}
		made, failed := newNetwork(wanted, now)
		if failed != nil {
			// Source: none; nothing can be in a network of this prefix.
			err = badRequest("%v", failed)
			return
		}
		if err = c.changeNetwork(made, payload, now); err != nil {
			return
		}
		made.startChange("CREATING", now.Add(c.networkDelay))
		c.networks.put(made.ID, made)
		view = showNetwork(made, now)
	})
	return view, err
}

func (c *Cloud) updateNetwork(r *request) (any, *apiError) {
	var payload networkPayload
	if err := r.decode("PartialUpdateNetworkPayload", schema.UpdateNetwork, &payload); err != nil {
		return nil, err
	}
	if err := c.checkReferences(payload); err != nil {
		return nil, err
	}
	return nil, c.withNetwork(r, func(n *network, now time.Time) *apiError {
		if err := c.changeNetwork(n, payload, now); err != nil {
			return err
		}
		n.startChange("UPDATING", now.Add(c.networkDelay))
		return nil
	})
}

// checkReferences checks routing tables and VPCs. The mock has none: a network works
// without them.
func (c *Cloud) checkReferences(payload networkPayload) *apiError {
	switch {
	case payload.RoutingTableID != "":
		return c.unconfirmed(noSuch("routing table"))
	case payload.VPCID != "":
		return c.unconfirmed(noSuch("VPC"))
	case payload.IPv4.inVPCRange() || payload.IPv6.inVPCRange():
		return c.unconfirmed(noSuch("VPC network range"))
	}
	return nil
}

// changeNetwork sets the fields that the payload has, except prefixes. On error nothing
// is changed.
func (c *Cloud) changeNetwork(n *network, payload networkPayload, now time.Time) *apiError {
	labels, err := mergeLabels(n.Labels, payload.Labels)
	if err != nil {
		return err
	}
	gateway4, err := c.gatewayIn(n.v4, payload.IPv4)
	if err != nil {
		return err
	}
	gateway6, err := c.gatewayIn(n.v6, payload.IPv6)
	if err != nil {
		return err
	}
	n.v4.setGateway(gateway4)
	n.v6.setGateway(gateway6)
	n.IPv4Nameservers = payload.IPv4.nameserversOr(n.IPv4Nameservers)
	n.IPv6Nameservers = payload.IPv6.nameserversOr(n.IPv6Nameservers)
	n.Labels, n.UpdatedAt = labels, now
	set(&n.Name, payload.Name)
	if payload.DHCP != nil {
		n.DHCPDisabled = !*payload.DHCP
	}
	if payload.Routed != nil {
		n.Isolated = !*payload.Routed
	}
	return nil
}

// deleteNetwork is refused while the network has NICs, also those of servers that are
// being deleted.
func (c *Cloud) deleteNetwork(r *request) (any, *apiError) {
	return nil, c.withNetwork(r, func(n *network, now time.Time) *apiError {
		if slices.ContainsFunc(c.nics.all(), func(nic *nic) bool { return nic.NetworkID == n.ID }) {
			// Source: the document: DeleteNetwork's description; 409 of DeleteNetwork.
			return conflict()
		}
		if n.change != networkDeleting {
			n.startChange(networkDeleting, now.Add(c.networkDelay))
			c.deletingNetworks[n.ID] = n
		}
		c.removeDeletedNetworks(now)
		return nil
	})
}
