// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// readNICs reads the NICs of a server, together with those of others in its
// network.
func (c *call) readNICs(ctx context.Context, serverID string, soon when) ([]NIC, error) {
	networkID := ""
	if c.spec.Networking != nil {
		networkID = c.spec.Networking.NetworkID
	}
	return c.inventory.serverNICs(ctx, networkID, serverID, soon)
}

// noteNICs notes what a read of the NICs of the ledger's server tells: the
// addresses once all have one (then it returns true), and whether they carry the
// allowed addresses.
func (c *call) noteNICs(nics []NIC) bool {
	var addresses []string
	complete := len(nics) > 0 && len(nics) >= c.expectedNICs()
	for i := range nics {
		own := nics[i].addresses()
		complete = complete && len(own) > 0
		addresses = append(addresses, own...)
	}
	initialized := c.carryAll(nics)
	c.ledger.update(c.key, func(e *entry) {
		if complete {
			e.addresses = addresses
		}
		if initialized {
			e.initialized = c.wanted()
		}
	})
	return complete
}

// wanted is a fingerprint of the allowed addresses and where they belong.
func (c *call) wanted() string {
	if len(c.spec.AllowedAddresses) == 0 {
		return ""
	}
	networking := ""
	if c.spec.Networking != nil {
		networking = c.spec.Networking.NetworkID + strings.Join(c.spec.Networking.NICIDs, ",")
	}
	return networking + " " + strings.Join(c.spec.AllowedAddresses, ",")
}

// knownAddresses are the addresses of the server's NICs, as far as this process
// has read them.
func (c *call) knownAddresses(serverID string) []corev1.NodeAddress {
	known := c.ledger.get(c.key)
	if known.serverID != serverID {
		return nil
	}
	var addresses []corev1.NodeAddress
	for _, address := range known.addresses {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return addresses
}

// inspectNICs says whether the NICs of the server, which is the ledger's, carry
// the allowed addresses. Once this process has seen them do so, and knows the
// addresses, it does not ask.
func (c *call) inspectNICs(ctx context.Context, serverID string) (initialized bool, err error) {
	known := c.ledger.get(c.key)
	if known.initialized == c.wanted() && len(known.addresses) > 0 {
		return true, nil
	}
	nics, err := c.readNICs(ctx, serverID, c.soon)
	if err == nil {
		c.noteNICs(nics)
	}
	if c.wanted() == "" {
		return true, nil // the addresses alone are not worth a failure
	}
	return c.ledger.get(c.key).initialized == c.wanted(), err
}

// ensureAllowedAddresses adds the allowed addresses to the NICs that lack them.
func (c *call) ensureAllowedAddresses(ctx context.Context, serverID string) error {
	if wanted := c.wanted(); wanted == "" || c.ledger.get(c.key).initialized == wanted {
		return nil
	}
	// CreateMachine may have read them a moment ago, but what others have added
	// since would be undone by the update.
	nics, err := c.readNICs(ctx, serverID, c.soon)
	if err != nil {
		return err
	}
	c.noteNICs(nics)
	selected := c.selectNICs(nics)
	if len(selected) < c.expectedNICs() {
		return newError(codes.Unavailable, fmt.Sprintf(
			"server %s does not have all NICs of providerSpec.networking yet", serverID))
	}
	for i := range selected {
		if err := c.ensureOnNIC(ctx, &selected[i]); err != nil {
			return err
		}
	}
	c.ledger.update(c.key, func(e *entry) { e.initialized = c.wanted() })
	return nil
}

// ensureOnNIC adds what the NIC lacks, and checks that it is there then. The API
// replaces the whole list, so what others put there is sent along.
func (c *call) ensureOnNIC(ctx context.Context, nic *NIC) error {
	missing := missingAddresses(nic.AllowedAddresses, c.spec.AllowedAddresses)
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
	if missing := missingAddresses(updated.AllowedAddresses, c.spec.AllowedAddresses); len(missing) > 0 {
		return newError(codes.Internal, fmt.Sprintf("NIC %s does not carry the allowedAddresses after its update: wanted %s, got %s",
			nic.ID, strings.Join(addresses, ", "), strings.Join(updated.AllowedAddresses, ", ")))
	}
	klog.V(2).InfoS("Allowed addresses added", "machine", c.machine, "nic", nic.ID, "added", missing)
	return nil
}

// selectNICs returns the NICs that the spec's networking is about: a server may
// have others.
func (c *call) selectNICs(nics []NIC) []NIC {
	networking := c.spec.Networking
	if networking == nil {
		return nil
	}
	var selected []NIC
	for _, nic := range nics {
		if (networking.NetworkID != "" && nic.NetworkID == networking.NetworkID) || slices.Contains(networking.NICIDs, nic.ID) {
			selected = append(selected, nic)
		}
	}
	return selected
}

// carryAll says whether there is nothing to do for InitializeMachine.
func (c *call) carryAll(nics []NIC) bool {
	if len(c.spec.AllowedAddresses) == 0 {
		return true
	}
	selected := c.selectNICs(nics)
	for i := range selected {
		if len(missingAddresses(selected[i].AllowedAddresses, c.spec.AllowedAddresses)) > 0 {
			return false
		}
	}
	return len(selected) >= c.expectedNICs()
}

// expectedNICs is how many NICs the spec's networking gives a server.
func (c *call) expectedNICs() int {
	if c.spec.Networking != nil && len(c.spec.Networking.NICIDs) > 0 {
		return len(c.spec.Networking.NICIDs)
	}
	return 1
}

// missingAddresses returns what of wanted is not in present, compared as prefixes:
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

// canonical is the canonical form of an address or CIDR.
func canonical(address string) string {
	if prefix, err := netip.ParsePrefix(address); err == nil {
		return prefix.Masked().String()
	}
	if ip, err := netip.ParseAddr(address); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()).String()
	}
	return address
}

// sendable is the form in which the API takes an address: a bare IPv6 address
// matches two of its alternatives at once and is refused, so it is sent as /128.
func sendable(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
		return canonical(address)
	}
	return address
}
