// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	createdAt time.Time
	v4, v6    *addressPool
}

func newNetwork(n Network, now time.Time) (*network, error) {
	v4, err := newAddressPool(n.IPv4Prefix)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.ID, err)
	}
	v6, err := newAddressPool(n.IPv6Prefix)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.ID, err)
	}
	return &network{Network: n, createdAt: now, v4: v4, v6: v6}, nil
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
	if nic.MAC == "" { // of the ID, with the prefix of OpenStack's ports
		nic.MAC = "fa:16:3e:" + nic.ID[:2] + ":" + nic.ID[2:4] + ":" + nic.ID[4:6]
	}
	return nil
}

func (n *network) release(nic *NIC) {
	n.v4.release(nic.IPv4)
	n.v6.release(nic.IPv6)
}

// addressPool holds the addresses of one prefix. A nil pool has none; its take returns the wanted address.
type addressPool struct {
	prefix netip.Prefix
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
	pool := &addressPool{parsed.Masked(), map[netip.Addr]bool{}}
	own := pool.prefix.Addr()
	pool.used[own], pool.used[pool.gateway()] = true, true
	if own.Is4() {
		last := own.As4()
		binary.BigEndian.PutUint32(last[:], binary.BigEndian.Uint32(last[:])|(1<<(32-parsed.Bits())-1))
		pool.used[netip.AddrFrom4(last)] = true
	}
	return pool, nil
}

func (p *addressPool) gateway() netip.Addr { return p.prefix.Addr().Next() }

// take reserves the wanted address, or the lowest free address if wanted is empty: STACKIT reuses a
// released address for the next server within 75 s, as seen in test runs of cluster-api-provider-stackit
// (2026-08-07 and 2026-08-11). An address of another prefix is returned, but not reserved.
func (p *addressPool) take(wanted string) (string, error) {
	if p == nil {
		return wanted, nil
	}
	if wanted != "" {
		addr, _ := netip.ParseAddr(wanted) // no prefix contains an invalid address
		if p.used[addr] {
			return "", fmt.Errorf("IP address %s is already in use", wanted)
		}
		p.used[addr] = p.prefix.Contains(addr)
		return wanted, nil
	}
	for addr := p.gateway(); p.prefix.Contains(addr); addr = addr.Next() {
		if !p.used[addr] {
			p.used[addr] = true
			return addr.String(), nil
		}
	}
	return "", errors.New("No more IP addresses available on the network") //nolint:staticcheck // OpenStack's text
}

func (p *addressPool) release(address string) {
	if addr, err := netip.ParseAddr(address); err == nil && p != nil {
		delete(p.used, addr)
	}
}

func (*Cloud) showNetwork(n *network, _ time.Time) object {
	view := object{
		"id": n.ID, "name": n.Name, "status": "CREATED", "routed": true, "dhcp": true, "labels": object{},
		"createdAt": n.createdAt.UTC(), "updatedAt": n.createdAt.UTC(),
	}
	if n.v4 != nil {
		view["ipv4"] = n.v4.view()
	}
	if n.v6 != nil {
		view["ipv6"] = n.v6.view()
	}
	return view
}

func (p *addressPool) view() object {
	return object{"prefixes": []string{p.prefix.String()}, "gateway": p.gateway().String(), "nameservers": []string{}}
}
