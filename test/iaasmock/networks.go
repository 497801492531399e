// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"
)

// errNoAddress is the error of a network without a free address.
var errNoAddress = errors.New("no free address")

// addressInUse is the error for an address that another NIC has.
type addressInUse string

func (a addressInUse) Error() string {
	return fmt.Sprintf("IP address %s is already in use", string(a))
}

// nic is a NIC, and when the API begins to show its addresses.
type nic struct {
	NIC
	// addressedAt is when the API begins to show the addresses; they are reserved from
	// the start.
	addressedAt time.Time
}

// viewAt is the NIC as of t.
func (n *nic) viewAt(t time.Time) NIC {
	view := n.NIC
	if t.Before(n.addressedAt) {
		view.IPv4, view.IPv6 = "", ""
	}
	return view
}

// network is a Network with the addresses of its prefixes.
type network struct {
	Network
	v4, v6 *addressPool
}

func newNetwork(n Network, now time.Time) (*network, error) {
	n.CreatedAt, n.UpdatedAt = now, now
	v4, err := newAddressPool(n.IPv4Prefix)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.ID, err)
	}
	v6, err := newAddressPool(n.IPv6Prefix)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.ID, err)
	}
	return &network{Network: n, v4: v4, v6: v6}, nil
}

// assign gives the NIC the addresses it asks for, else free ones, and a MAC.
func (n *network) assign(nic *NIC) error {
	v4, err := n.v4.take(nic.IPv4)
	if err != nil {
		return err
	}
	v6, err := n.v6.take(nic.IPv6)
	if err != nil {
		n.v4.release(v4)
		return err
	}
	nic.IPv4, nic.IPv6 = v4, v6
	if nic.MAC == "" {
		nic.MAC = macOf(nic.ID)
	}
	return nil
}

func (n *network) release(nic *NIC) {
	n.v4.release(nic.IPv4)
	n.v6.release(nic.IPv6)
}

// addressPool is the addresses of one prefix. A nil pool has none; take returns "".
type addressPool struct {
	prefix      netip.Prefix
	gateway     netip.Addr // not valid if there is none
	first, last netip.Addr
	next        netip.Addr
	used        map[netip.Addr]bool
}

func newAddressPool(prefix string) (*addressPool, error) {
	if prefix == "" {
		return nil, nil
	}
	parsed, err := netip.ParsePrefix(prefix)
	if err != nil {
		return nil, err
	}
	parsed = parsed.Masked()
	// NICs do not get the network's own address and the gateway.
	first := parsed.Addr().Next().Next()
	if !parsed.Contains(first) {
		return nil, fmt.Errorf("prefix %s has no room for a NIC", prefix)
	}
	last := lastAddress(parsed)
	if parsed.Addr().Is4() {
		last = last.Prev() // broadcast
	}
	return &addressPool{prefix: parsed, gateway: parsed.Addr().Next(), first: first, last: last, next: first, used: map[netip.Addr]bool{}}, nil
}

// has reports whether NICs can get the address. It is true for "".
func (p *addressPool) has(address string) bool {
	if address == "" {
		return true
	}
	addr, err := netip.ParseAddr(address)
	return p != nil && err == nil && addr.Compare(p.first) >= 0 && addr.Compare(p.last) <= 0
}

// take reserves the wanted address, or the next free one if none is wanted. An address
// just released is not used again at once. An address of another prefix is returned, but
// not reserved.
func (p *addressPool) take(wanted string) (string, error) {
	switch {
	case p == nil || !p.has(wanted):
		return wanted, nil
	case wanted != "":
		return p.takeThis(wanted)
	}
	for start, addr := p.next, p.next; ; {
		free := !p.isTaken(addr)
		candidate := addr
		if addr = addr.Next(); addr.Compare(p.last) > 0 {
			addr = p.first
		}
		if free {
			p.used[candidate], p.next = true, addr
			return candidate.String(), nil
		}
		if addr == start {
			return "", errNoAddress
		}
	}
}

func (p *addressPool) takeThis(wanted string) (string, error) {
	addr, err := netip.ParseAddr(wanted)
	if err != nil {
		return "", err
	}
	if p.isTaken(addr) {
		return "", addressInUse(wanted)
	}
	p.used[addr] = true
	return addr.String(), nil
}

// isTaken reports whether the address is a NIC's or the gateway's.
func (p *addressPool) isTaken(addr netip.Addr) bool { return p.used[addr] || addr == p.gateway }

func (p *addressPool) release(address string) {
	if p == nil || address == "" {
		return
	}
	if addr, err := netip.ParseAddr(address); err == nil {
		delete(p.used, addr)
	}
}

func lastAddress(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// macOf computes a MAC from a NIC's ID, with the prefix of OpenStack's ports.
func macOf(id string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	sum := hash.Sum32()
	return fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", byte(sum>>16), byte(sum>>8), byte(sum)) //nolint:gosec // the lowest byte is meant
}

func showNetwork(n *network, _ time.Time) object {
	view := object{
		"id": n.ID, "name": n.Name, "status": "CREATED", "routed": !n.Isolated, "dhcp": !n.DHCPDisabled,
		"labels": orEmptyMap(n.Labels), "createdAt": n.CreatedAt.UTC(), "updatedAt": n.UpdatedAt.UTC(),
	}
	if n.v4 != nil {
		view["ipv4"] = n.v4.view(n.IPv4Nameservers)
	}
	if n.v6 != nil {
		view["ipv6"] = n.v6.view(n.IPv6Nameservers)
	}
	return view
}

func (p *addressPool) view(nameservers []string) object {
	return object{
		"prefixes": []string{p.prefix.String()}, "gateway": p.gateway.String(), "nameservers": orEmpty(nameservers),
	}
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
		for n := range c.nics.each() {
			if n.NetworkID == network.ID {
				// Source: the document: 409 of DeleteNetwork.
				return conflict()
			}
		}
		c.networks.remove(network.ID)
		return nil
	})
}
