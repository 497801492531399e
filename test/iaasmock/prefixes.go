// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "net/netip"

// prefixes are allowedAddresses as the API shows them.
func (c *Cloud) prefixes(sent []string) []string {
	if !c.limits.wholePrefixes {
		return sent
	}
	whole := make([]string, 0, len(sent))
	for _, address := range sent {
		whole = append(whole, wholePrefix(address))
	}
	return whole
}

// wholePrefix has no bits behind its length. What is no prefix stays as it is:
// the document's patterns let more pass than there are prefixes.
func wholePrefix(address string) string {
	if prefix, err := netip.ParsePrefix(address); err == nil {
		return prefix.Masked().String()
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return netip.PrefixFrom(addr, addr.BitLen()).String()
}
