// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/netip"
	"strings"
	"time"
)

const (
	networkCreated  = "CREATED"
	networkDeleting = "DELETING"
)

// Where networks created without a prefix get theirs, and its default length.
const (
	areaIPv4, defaultIPv4Length = "10.128.0.0/9", 25
	areaIPv6, defaultIPv6Length = "fd80::/48", 64
)

// startChange sets the network's status until end.
func (n *network) startChange(change string, end time.Time) { n.change, n.changedAt = change, end }

func (n *network) statusAt(now time.Time) string {
	if n.change == networkDeleting || now.Before(n.changedAt) {
		return n.change
	}
	return networkCreated
}

// removeDeletedNetworks removes the networks whose deletion has ended.
func (c *Cloud) removeDeletedNetworks(now time.Time) {
	for id, n := range c.deletingNetworks {
		if !now.Before(n.changedAt) {
			c.networks.remove(id)
			delete(c.deletingNetworks, id)
		}
	}
}

// networkFamilyPayload is the part of a body for IPv4 or IPv6; nil if there is none.
type networkFamilyPayload struct {
	Prefix       string `json:"prefix"`
	PrefixLength int    `json:"prefixLength"`
	// Gateway is null for none.
	Gateway     nullableText `json:"gateway"`
	Nameservers *[]string    `json:"nameservers"`
	VPCRangeID  string       `json:"vpcNetworkRangeId"`
}

func (p *networkFamilyPayload) inVPCRange() bool { return p != nil && p.VPCRangeID != "" }

// gatewayIn is the requested gateway, also one outside the prefix, else the current one.
func (c *Cloud) gatewayIn(pool *addressPool, p *networkFamilyPayload) (netip.Addr, *apiError) {
	if p == nil || pool == nil {
		return pool.currentGateway(), nil
	}
	if !p.Gateway.set {
		return pool.gateway, nil
	}
	if p.Gateway.value == "" {
		return netip.Addr{}, nil
	}
	address, err := netip.ParseAddr(strings.TrimSpace(p.Gateway.value))
	switch {
	case err != nil || !pool.prefix.Contains(address):
		return address, c.unconfirmed(badRequest("gateway %s is not in %s", p.Gateway.value, pool.prefix))
	case address != pool.gateway && pool.used[address]:
		return address, c.unconfirmed(badRequest("IP address %s is already in use", address))
	}
	return address, nil
}

func (p *networkFamilyPayload) nameserversOr(current []string) []string {
	if p == nil || p.Nameservers == nil {
		return current
	}
	return *p.Nameservers
}

func (p *addressPool) currentGateway() netip.Addr {
	if p == nil {
		return netip.Addr{}
	}
	return p.gateway
}

// setGateway sets the gateway, whose address no NIC gets; the old one is free again.
func (p *addressPool) setGateway(address netip.Addr) {
	if p != nil {
		p.gateway = address
	}
}

// choosePrefixes returns the prefixes of a new network: the requested ones, or free ones
// of the requested length. A request without IPv4 and IPv6 gets IPv4.
func (c *Cloud) choosePrefixes(r *request, payload networkPayload) (v4, v6 string, err *apiError) {
	if payload.IPv4 == nil && payload.IPv6 == nil {
		payload.IPv4 = &networkFamilyPayload{PrefixLength: defaultIPv4Length}
	}
	taken := c.takenPrefixes(r)
	if v4, err = payload.IPv4.choose(taken, areaIPv4, defaultIPv4Length); err != nil {
		return "", "", err
	}
	v6, err = payload.IPv6.choose(taken, areaIPv6, defaultIPv6Length)
	return v4, v6, err
}

// takenPrefixes are the prefixes of the project's networks in the region.
func (c *Cloud) takenPrefixes(r *request) []netip.Prefix {
	var taken []netip.Prefix
	for _, n := range c.networks.all() {
		if !r.covers(n.ProjectID, n.Region) {
			continue
		}
		for _, pool := range []*addressPool{n.v4, n.v6} {
			if pool != nil {
				taken = append(taken, pool.prefix)
			}
		}
	}
	return taken
}

func (p *networkFamilyPayload) choose(taken []netip.Prefix, area string, length int) (string, *apiError) {
	if p == nil {
		return "", nil
	}
	if p.Prefix == "" {
		if p.PrefixLength > 0 {
			length = p.PrefixLength
		}
		return freePrefix(taken, netip.MustParsePrefix(area), length)
	}
	wanted, _ := netip.ParsePrefix(p.Prefix)
	if !wanted.IsValid() {
		return p.Prefix, nil // newNetwork says why
	}
	if overlapping(taken, wanted) != nil {
		// Source: the document: 409 of CreateNetwork; that prefixes must not overlap is the mock's choice.
		return "", conflict()
	}
	return wanted.Masked().String(), nil
}

// freePrefix is the first prefix of that length in the area that overlaps no taken one.
func freePrefix(taken []netip.Prefix, area netip.Prefix, length int) (string, *apiError) {
	if length < area.Bits() {
		// Source: the document: 409 of CreateNetwork.
		return "", conflict()
	}
	candidate := netip.PrefixFrom(area.Addr(), length)
	for area.Contains(candidate.Addr()) {
		other := overlapping(taken, candidate)
		if other == nil {
			return candidate.String(), nil
		}
		// Go on behind the larger of the two.
		end := lastAddress(candidate)
		if otherEnd := lastAddress(other.Masked()); otherEnd.Compare(end) > 0 {
			end = otherEnd
		}
		candidate = netip.PrefixFrom(end.Next(), length)
	}
	// Source: the document: 409 of CreateNetwork.
	return "", conflict()
}

func overlapping(taken []netip.Prefix, prefix netip.Prefix) *netip.Prefix {
	for i := range taken {
		if taken[i].Overlaps(prefix) {
			return &taken[i]
		}
	}
	return nil
}
