// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// readNICs reads the NICs of a server, together with those of other servers in its network, and
// records their addresses and allowed addresses.
func (c *call) readNICs(ctx context.Context, serverID string) ([]NIC, error) {
	own, err := c.listNICs(ctx, serverID)
	if err != nil {
		return nil, err
	}
	if addresses := c.addressesOf(own); addresses != nil {
		c.memory.sawNICs(&c.ref, serverID, func(seen *seenNICs) { seen.addresses = addresses })
	}
	if c.carryAll(own) {
		c.sawAllowed(serverID)
	}
	return own, nil
}

// listNICs reads the NICs of a server from the list of its network or, if that shows none,
// separately.
func (c *call) listNICs(ctx context.Context, serverID string) (own []NIC, err error) {
	lister := c.nicsIn(c.networkID())
	var all *list[NIC]
	if c.networkID() == "" {
		all = &list[NIC]{}
	} else {
		all = lister.next(ctx, time.Time{}, ownGet)
	}
	for i := range all.items {
		if all.items[i].ServerID == serverID {
			own = append(own, all.items[i])
		}
	}
	if all.err != nil || len(own) > 0 {
		return own, all.err
	}
	err = lister.single(ctx, all, ownGet, func(ctx context.Context) (err error) {
		own, err = c.client.ListServerNICs(ctx, serverID)
		return err
	})
	return own, err
}

// sawAllowed records that the NICs of the machine's server carry the spec's allowedAddresses.
func (c *call) sawAllowed(serverID string) {
	c.memory.sawNICs(&c.ref, serverID, func(seen *seenNICs) { seen.allowed = c.allowedFingerprint() })
}

// networkID returns the network of the machine's NICs; "" if the NICs are the user's own.
func (c *call) networkID() string {
	if c.spec.Networking == nil {
		return ""
	}
	return c.spec.Networking.NetworkID
}

// addressesOf returns the addresses of all NICs; nil unless each NIC has one.
func (c *call) addressesOf(nics []NIC) (addresses []string) {
	if len(nics) < c.expectedNICs() {
		return nil
	}
	for i := range nics {
		own := nics[i].Addresses()
		if len(own) == 0 {
			return nil
		}
		addresses = append(addresses, own...)
	}
	return addresses
}

// connection is the state of a server's NICs.
type connection struct {
	// addresses are the NICs' addresses; nil unless each NIC has one.
	addresses []corev1.NodeAddress
	// allowed reports whether the NICs carry the spec's allowedAddresses.
	allowed bool
}

func (n connection) complete() bool { return len(n.addresses) > 0 && n.allowed }

// missing describes what a connection lacks, for a Machine's status.
func (n connection) missing() string {
	if !n.allowed {
		return "its NICs do not carry all allowedAddresses"
	}
	return "not all of its NICs have an address"
}

// knownConnection returns the connection of the machine's server in the record.
func (c *call) knownConnection(serverID string) connection {
	entry := c.record()
	if entry.serverID != serverID {
		return connection{}
	}
	known := connection{allowed: entry.nics.allowed == c.allowedFingerprint()}
	for _, address := range entry.nics.addresses {
		known.addresses = append(known.addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return known
}

// connect adds the missing allowedAddresses to the NICs of the machine's server, and returns the
// resulting connection. It makes no API call if the record has a complete one.
func (c *call) connect(ctx context.Context, serverID string) (connection, error) {
	known, nics, err := c.readConnection(ctx, serverID)
	if selected := c.selectNICs(nics); err == nil && !known.complete() && len(selected) >= c.expectedNICs() {
		for i := range selected {
			if err := c.allowOnNIC(ctx, &selected[i]); err != nil {
				return known, err
			}
		}
		c.sawAllowed(serverID)
		known.allowed = true
	}
	return known, err
}

// readConnection reads the connection of the machine's server, unless the record has a
// complete one.
func (c *call) readConnection(ctx context.Context, serverID string) (connection, []NIC, error) {
	if known := c.knownConnection(serverID); known.complete() {
		return known, nil, nil
	}
	nics, err := c.readNICs(ctx, serverID)
	return c.knownConnection(serverID), nics, err
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
		return newError(ReasonUpdateIgnored,
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

// carryAll reports whether the NICs of the spec's networking carry the allowedAddresses.
func (c *call) carryAll(nics []NIC) bool {
	if len(c.spec.AllowedAddresses) == 0 {
		return true
	}
	selected := c.selectNICs(nics)
	for i := range selected {
		if len(c.missingOn(&selected[i])) > 0 {
			return false
		}
	}
	return len(selected) >= c.expectedNICs()
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
