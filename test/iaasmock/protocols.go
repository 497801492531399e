// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"slices"
)

// protocols are those that the document names, with IANA's numbers.
var protocols = []struct {
	name   string
	number int64
}{
	{"ah", 51}, {"dccp", 33}, {"egp", 8}, {"esp", 50}, {"gre", 47}, {"icmp", 1}, {"igmp", 2}, {"ipip", 4},
	{"ipv6-encap", 41}, {"ipv6-frag", 44}, {"ipv6-icmp", 58}, {"ipv6-nonxt", 59}, {"ipv6-opts", 60}, {"ipv6-route", 43},
	{"ospf", 89}, {"pgm", 113}, {"rsvp", 46}, {"sctp", 132}, {"tcp", 6}, {"udp", 17}, {"udplite", 136}, {"vrrp", 112},
}

// protocolName is "" for a protocol that the document does not name.
func protocolName(number int64) string {
	for _, p := range protocols {
		if p.number == number {
			return p.name
		}
	}
	return ""
}

// protocolNumber reads a name or number; nothing means any protocol, nil. It is
// false for a name that the document does not have.
func protocolNumber(raw json.RawMessage) (*int64, bool) {
	if raw == nil {
		return nil, true
	}
	var number int64
	if err := json.Unmarshal(raw, &number); err == nil {
		return &number, true
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return nil, false
	}
	for _, p := range protocols {
		if p.name == name {
			return &p.number, true
		}
	}
	return nil, false
}

func hasPorts(protocol int64) bool {
	return slices.Contains([]string{"dccp", "sctp", "tcp", "udp", "udplite"}, protocolName(protocol))
}

func isICMP(protocol int64) bool {
	return slices.Contains([]string{"icmp", "ipv6-icmp"}, protocolName(protocol))
}
