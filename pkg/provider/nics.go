// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// connection is what reads have shown of the NICs of a Machine's server.
type connection struct {
	// addresses are the NICs' addresses, once each NIC has one.
	addresses []corev1.NodeAddress
	// allowed is a fingerprint of the allowedAddresses that the NICs carry; "" if they lack some.
	allowed string
}

// connect returns the connection of the machine's server, from the record if that is complete, else
// from its NICs. It adds missing allowedAddresses to them if mayChange.
func (c *call) connect(ctx context.Context, serverID string, mayChange bool) (connection, error) {
	if known := c.knownConnection(serverID); c.missing(known) == "" {
		return known, nil
	}
	nics, err := c.listNICs(ctx, serverID)
	if err != nil {
		return connection{}, err
	}
	selected := c.selectNICs(nics)
	found, isAllowed := connection{addresses: c.addressesOf(nics)}, len(selected) >= c.expectedNICs()
	for i := range selected {
		isMissing := len(c.missingOn(&selected[i])) > 0
		if isMissing && mayChange {
			err = errors.Join(err, c.allowOnNIC(ctx, &selected[i]))
		}
		isAllowed = isAllowed && (!isMissing || mayChange && err == nil)
	}
	if isAllowed {
		found.allowed = c.allowedFingerprint()
	}
	c.records.change(&c.ref, func(known *record) {
		if known.serverID == serverID {
			known.nics = found
		}
	})
	return found, err
}

// knownConnection returns the connection of the machine's server in the record.
func (c *call) knownConnection(serverID string) connection {
	if known := c.record(); known.serverID == serverID {
		return known.nics
	}
	return connection{}
}

// missing describes what a connection lacks, for a Machine's status; "" if it is complete.
func (c *call) missing(n connection) string {
	switch {
	case n.allowed != c.allowedFingerprint():
		return missingAllowed
	case len(n.addresses) == 0:
		return "not all of its NICs have an address"
	default:
		return ""
	}
}

const missingAllowed = "its NICs do not carry all allowedAddresses"

// listNICs reads the NICs of a server: in the list of its network, if enough calls share it, else or
// if the list shows none separately.
func (c *call) listNICs(ctx context.Context, serverID string) (own []NIC, err error) {
	if c.isShared() && c.networkID() != "" {
		all := c.nicsIn(c.networkID()).get(ctx, c.clock.Now())
		for i := range all.items {
			if all.items[i].ServerID == serverID {
				own = append(own, all.items[i])
			}
		}
		if all.err != nil || len(own) > 0 {
			return own, all.err
		}
	}
	_, err = c.read(ctx, func(ctx context.Context) (err error) {
		own, err = c.client.ListServerNICs(ctx, serverID)
		return err
	})
	return own, err
}

// networkID returns the network of the machine's NICs; "" if the NICs are the user's own.
func (c *call) networkID() string {
	if c.spec.Networking == nil {
		return ""
	}
	return c.spec.Networking.NetworkID
}

// addressesOf returns the addresses of all NICs; nil unless each NIC has one.
func (c *call) addressesOf(nics []NIC) (addresses []corev1.NodeAddress) {
	if len(nics) < c.expectedNICs() {
		return nil
	}
	for i := range nics {
		own := nics[i].Addresses()
		if len(own) == 0 {
			return nil
		}
		for _, address := range own {
			addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
	}
	return addresses
}

// allowedFingerprint identifies a spec's allowed addresses and their networking; "" if it has none.
func (c *call) allowedFingerprint() string {
	if len(c.spec.AllowedAddresses) == 0 {
		return ""
	}
	networking := ""
	if c.spec.Networking != nil {
		networking = c.spec.Networking.NetworkID + strings.Join(c.spec.Networking.NICIDs, ",")
	}
	return networking + " " + strings.Join(c.spec.AllowedAddresses, ",")
}

// allowOnNIC adds the missing allowedAddresses to a NIC, and checks the answer for them. The API
// replaces the whole list, so addresses added by others are sent, too.
func (c *call) allowOnNIC(ctx context.Context, nic *NIC) error {
	missing := c.missingOn(nic)
	if len(missing) == 0 {
		return nil
	}
	addresses := make([]string, 0, len(nic.AllowedAddresses)+len(missing))
	for _, address := range append(slices.Clone(nic.AllowedAddresses), missing...) {
		addresses = append(addresses, sendable(address))
	}
	updated, err := c.client.UpdateAllowedAddresses(ctx, nic.NetworkID, nic.ID, addresses)
	if err != nil {
		return err
	}
	if len(c.missingOn(updated)) > 0 {
		return newError(ReasonNotReady,
			"NIC %s does not carry the allowedAddresses after its update: wanted %s, got %s",
			nic.ID, strings.Join(addresses, ", "), strings.Join(updated.AllowedAddresses, ", "))
	}
	klog.V(2).InfoS("Allowed addresses added", "machine", c.machine, "nic", nic.ID, "added", missing)
	return nil
}

// missingOn returns the spec's allowedAddresses that do not pass the NIC.
func (c *call) missingOn(nic *NIC) []string {
	if nic.Insecure {
		return nil
	}
	return missingAddresses(nic.AllowedAddresses, c.spec.AllowedAddresses)
}

// selectNICs returns the NICs in the spec's networking: a server may have others.
func (c *call) selectNICs(nics []NIC) []NIC {
	networking := c.spec.Networking
	if networking == nil {
		return nil
	}
	var selected []NIC
	for _, nic := range nics {
		isInNetwork := networking.NetworkID != "" && nic.NetworkID == networking.NetworkID
		if isInNetwork || slices.Contains(networking.NICIDs, nic.ID) {
			selected = append(selected, nic)
		}
	}
	return selected
}

// expectedNICs returns the number of NICs that the spec's networking gives a server.
func (c *call) expectedNICs() int {
	if c.spec.Networking != nil && len(c.spec.Networking.NICIDs) > 0 {
		return len(c.spec.Networking.NICIDs)
	}
	return 1
}

// missingAddresses returns the wanted addresses that are not in present, compared as prefixes:
// 10.0.0.1 is 10.0.0.1/32, and 10.0.0.1/8 is 10.0.0.0/8.
func missingAddresses(present, wanted []string) []string {
	seen := map[string]bool{}
	for _, address := range present {
		seen[canonical(address)] = true
	}
	var missing []string
	for _, address := range wanted {
		if key := canonical(address); !seen[key] {
			seen[key] = true
			missing = append(missing, address)
		}
	}
	return missing
}

// canonical returns the canonical form of an address or CIDR.
func canonical(address string) string {
	if prefix, err := netip.ParsePrefix(address); err == nil {
		return prefix.Masked().String()
	}
	if ip, err := netip.ParseAddr(address); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()).String()
	}
	return address
}

// sendable returns an address in the API's form: a bare IPv6 address matches two of its
// alternatives and is refused, so it is sent as /128.
func sendable(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
		return canonical(address)
	}
	return address
}
