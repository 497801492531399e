// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"
)

// nic is a NIC with the times from which the API shows it and its addresses.
type nic struct {
	NIC
	// listedAt is when its server and lists begin to show it.
	listedAt time.Time
	// addressedAt is when the API begins to show the addresses; they are reserved from
	// the start.
	addressedAt time.Time
}

func (n *nic) isListed(t time.Time) bool { return !t.Before(n.listedAt) }

// viewAt returns the NIC as of t.
func (n *nic) viewAt(t time.Time) NIC {
	view := n.NIC
	if t.Before(n.addressedAt) {
		view.IPv4, view.IPv6 = "", ""
	}
	return view
}

// network is a Network with the address pools of its prefixes.
type network struct {
	Network
	v4, v6 *addressPool
}

func newNetwork(n Network, now time.Time) (*network, error) {
	n.CreatedAt = now
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

// assign gives the NIC its requested addresses, or free ones, and a MAC.
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

// addressPool holds the addresses of one prefix. A nil pool has none; its take returns the wanted address.
type addressPool struct {
	prefix  netip.Prefix
	gateway netip.Addr
	// next is the lowest address that may be free.
	next netip.Addr
	// used are the NICs' addresses, and the reserved addresses: the network's own, the gateway's
	// and, for IPv4, the last one.
	used map[netip.Addr]bool
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
	own := parsed.Addr()
	gateway := own.Next()
	pool := &addressPool{parsed, gateway, gateway.Next(), map[netip.Addr]bool{own: true, gateway: true}}
	if !parsed.Contains(pool.next) {
		return nil, fmt.Errorf("prefix %s has no room for a NIC", prefix)
	}
	if own.Is4() {
		last := own.As4()
		binary.BigEndian.PutUint32(last[:], binary.BigEndian.Uint32(last[:])|(1<<(32-parsed.Bits())-1))
		pool.used[netip.AddrFrom4(last)] = true
	}
	return pool, nil
}

// take reserves the wanted address, or the lowest free address if wanted is empty: STACKIT reuses a
// released address for the next server within 75 s, as seen in test runs of cluster-api-provider-stackit
// (2026-08-07 and 2026-08-11). An address of another prefix is returned, but not reserved.
func (p *addressPool) take(wanted string) (string, error) {
	if p == nil {
		return wanted, nil
	}
	if wanted != "" {
		addr, _ := netip.ParseAddr(wanted) // no prefix contains an invalid address
		if !p.prefix.Contains(addr) {
			return wanted, nil
		}
		if p.used[addr] {
			return "", fmt.Errorf("IP address %s is already in use", wanted)
		}
		p.used[addr] = true
		return addr.String(), nil
	}
	for addr := p.next; p.prefix.Contains(addr); addr = addr.Next() {
		if !p.used[addr] {
			p.used[addr], p.next = true, addr.Next()
			return addr.String(), nil
		}
	}
	return "", errors.New("No more IP addresses available on the network") //nolint:staticcheck // OpenStack's text
}

func (p *addressPool) release(address string) {
	if addr, err := netip.ParseAddr(address); err == nil && p != nil && p.used[addr] {
		delete(p.used, addr)
		if addr.Less(p.next) {
			p.next = addr
		}
	}
}

// macOf computes a MAC from a NIC's ID, with the prefix of OpenStack's ports.
func macOf(id string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	sum := hash.Sum32()
	//nolint:gosec // the lowest byte is meant
	return fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", byte(sum>>16), byte(sum>>8), byte(sum))
}

func (*Cloud) showNetwork(n *network, _ time.Time) object {
	view := object{
		"id": n.ID, "name": n.Name, "status": "CREATED", "routed": !n.Isolated, "dhcp": !n.DHCPDisabled,
		"labels": orEmptyMap(n.Labels), "createdAt": n.CreatedAt.UTC(), "updatedAt": n.CreatedAt.UTC(),
	}
	if n.v4 != nil {
		view["ipv4"] = n.v4.view(n.IPv4Nameservers)
	}
	if n.v6 != nil {
		view["ipv6"] = n.v6.view(nil)
	}
	return view
}

func (p *addressPool) view(nameservers []string) object {
	return object{
		"prefixes": []string{p.prefix.String()}, "gateway": p.gateway.String(), "nameservers": orEmpty(nameservers),
	}
}

// createNetwork creates a network that is CREATED at once. Without a prefix it gets a prefix of its own.
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
		view = c.showNetwork(made, now)
	})
	return view, err
}

// nextPrefix returns the prefix of the number-th network created by a call; length 0 means 24.
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
