// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

const (
	directionIngress = "ingress"
	directionEgress  = "egress"
	ethertypeIPv4    = "IPv4"
	ethertypeIPv6    = "IPv6"
)

type securityGroupRulePayload struct {
	Description           string          `json:"description"`
	Direction             string          `json:"direction"`
	Ethertype             string          `json:"ethertype"`
	Protocol              json.RawMessage `json:"protocol"`
	PortRange             *portRange      `json:"portRange"`
	ICMPParameters        *icmpParameters `json:"icmpParameters"`
	IPRange               string          `json:"ipRange"`
	RemoteSecurityGroupID string          `json:"remoteSecurityGroupId"`
}

type portRange struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

type icmpParameters struct {
	Type int64 `json:"type"`
	Code int64 `json:"code"`
}

type protocolView struct {
	Name   string `json:"name,omitempty"`
	Number int64  `json:"number"`
}

type securityGroupRuleView struct {
	ID                    string          `json:"id"`
	SecurityGroupID       string          `json:"securityGroupId"`
	Description           string          `json:"description,omitempty"`
	Direction             string          `json:"direction"`
	Ethertype             string          `json:"ethertype"`
	Protocol              *protocolView   `json:"protocol,omitempty"`
	PortRange             *portRange      `json:"portRange,omitempty"`
	ICMPParameters        *icmpParameters `json:"icmpParameters,omitempty"`
	IPRange               string          `json:"ipRange,omitempty"`
	RemoteSecurityGroupID string          `json:"remoteSecurityGroupId,omitempty"`
	CreatedAt             time.Time       `json:"createdAt"`
	UpdatedAt             time.Time       `json:"updatedAt"`
}

func showSecurityGroupRule(g *SecurityGroup, rule SecurityGroupRule) securityGroupRuleView {
	view := securityGroupRuleView{
		ID: rule.ID, SecurityGroupID: g.ID, Description: rule.Description, Direction: rule.Direction, Ethertype: rule.Ethertype,
		IPRange: rule.IPRange, RemoteSecurityGroupID: rule.RemoteSecurityGroupID,
		CreatedAt: rule.CreatedAt.UTC(), UpdatedAt: rule.UpdatedAt.UTC(),
	}
	if rule.Protocol != nil {
		view.Protocol = &protocolView{Name: protocolName(*rule.Protocol), Number: *rule.Protocol}
	}
	if rule.Ports != nil {
		view.PortRange = &portRange{Min: rule.Ports[0], Max: rule.Ports[1]}
	}
	if rule.ICMP != nil {
		view.ICMPParameters = &icmpParameters{Type: rule.ICMP[0], Code: rule.ICMP[1]}
	}
	return view
}

func showSecurityGroupRules(g *SecurityGroup) []securityGroupRuleView {
	views := make([]securityGroupRuleView, 0, len(g.Rules))
	for _, rule := range g.Rules {
		views = append(views, showSecurityGroupRule(g, rule))
	}
	return views
}

func (c *Cloud) listSecurityGroupRules(r *request) (view any, err *apiError) {
	err = c.withSecurityGroup(r, func(g *SecurityGroup, _ time.Time) *apiError {
		view = items(showSecurityGroupRules(g))
		return nil
	})
	return view, err
}

// withSecurityGroupRule runs f on the rule that the path names.
func (c *Cloud) withSecurityGroupRule(r *request, f func(*SecurityGroup, SecurityGroupRule)) *apiError {
	return c.withSecurityGroup(r, func(g *SecurityGroup, _ time.Time) *apiError {
		i := slices.IndexFunc(g.Rules, func(rule SecurityGroupRule) bool { return rule.ID == r.vars["securityGroupRuleId"] })
		if i < 0 {
			return notFound("security group rule")
		}
		f(g, g.Rules[i])
		return nil
	})
}

func (c *Cloud) getSecurityGroupRule(r *request) (view any, err *apiError) {
	err = c.withSecurityGroupRule(r, func(g *SecurityGroup, rule SecurityGroupRule) { view = showSecurityGroupRule(g, rule) })
	return view, err
}

func (c *Cloud) deleteSecurityGroupRule(r *request) (any, *apiError) {
	return nil, c.withSecurityGroupRule(r, func(g *SecurityGroup, gone SecurityGroupRule) {
		g.dropRules(func(rule SecurityGroupRule) bool { return rule.ID == gone.ID })
	})
}

func (c *Cloud) createSecurityGroupRule(r *request) (view any, err *apiError) {
	payload := securityGroupRulePayload{Ethertype: ethertypeIPv4}
	if err := r.decode("CreateSecurityGroupRulePayload", schema.CreateSecurityGroupRule, &payload); err != nil {
		return nil, err
	}
	rule, err := c.orderedRule(payload)
	if err != nil {
		return nil, err
	}
	err = c.withSecurityGroup(r, func(g *SecurityGroup, now time.Time) *apiError {
		if id := payload.RemoteSecurityGroupID; id != "" {
			if remote, ok := c.findSecurityGroup(r, id); !ok || remote.ID != id {
				if err := c.unconfirmed(noSuch("security group")); err != nil {
					return err
				}
			}
		}
		if err := c.allowSecurityGroupRule(r.project(), r.region()); err != nil {
			return err
		}
		rule.ID, rule.CreatedAt, rule.UpdatedAt = c.ids.uuid(), now, now
		g.Rules = append(slices.Clone(g.Rules), rule)
		view = showSecurityGroupRule(g, rule)
		return nil
	})
	return view, err
}

// orderedRule returns the rule of the payload. The document names the values of its
// fields, but its schema does not check them.
func (c *Cloud) orderedRule(p securityGroupRulePayload) (SecurityGroupRule, *apiError) {
	rule := SecurityGroupRule{
		Description: p.Description, Direction: p.Direction, Ethertype: p.Ethertype,
		IPRange: p.IPRange, RemoteSecurityGroupID: p.RemoteSecurityGroupID,
	}
	protocol, ok := protocolNumber(p.Protocol)
	rule.Protocol = protocol
	switch {
	case !slices.Contains([]string{directionIngress, directionEgress}, p.Direction):
		// Source: the document: possible values of BaseSecurityGroupRule's direction.
		return rule, badRequest("direction %q is not supported", p.Direction)
	case !slices.Contains([]string{ethertypeIPv4, ethertypeIPv6}, p.Ethertype):
		// Source: the document: possible values of BaseSecurityGroupRule's ethertype.
		return rule, badRequest("ethertype %q is not supported", p.Ethertype)
	case !ok:
		// Source: the document: possible values of ProtocolName.
		return rule, badRequest("protocol %s is not supported", p.Protocol)
	}
	if err := p.checkDetails(protocol); err != nil {
		return rule, err
	}
	if err := c.checkEnds(p, protocol); err != nil {
		return rule, err
	}
	if p.PortRange != nil {
		rule.Ports = &[2]int64{p.PortRange.Min, p.PortRange.Max}
	}
	if p.ICMPParameters != nil {
		rule.ICMP = &[2]int64{p.ICMPParameters.Type, p.ICMPParameters.Code}
	}
	return rule, nil
}

// checkDetails checks the fields that only some protocols have.
func (p securityGroupRulePayload) checkDetails(protocol *int64) *apiError {
	switch {
	case p.PortRange != nil && p.PortRange.Min > p.PortRange.Max:
		// Source: the document: descriptions of PortRange's min and max.
		return badRequest("portRange: min must not be greater than max")
	case p.ICMPParameters != nil && (protocol == nil || !isICMP(*protocol)):
		// Source: the document: descriptions of ICMPParameters' type and code.
		return badRequest("icmpParameters need protocol icmp or ipv6-icmp")
	}
	return nil
}

// checkEnds checks the ports, the range and the group of the rule.
func (c *Cloud) checkEnds(p securityGroupRulePayload, protocol *int64) *apiError {
	switch {
	case p.PortRange != nil && (protocol == nil || !hasPorts(*protocol)):
		return c.unconfirmed(badRequest("portRange needs a protocol with ports"))
	case p.IPRange != "" && p.RemoteSecurityGroupID != "":
		return c.unconfirmed(badRequest("ipRange and remoteSecurityGroupId exclude each other"))
	case !fitsEthertype(p.IPRange, p.Ethertype):
		return c.unconfirmed(badRequest("ipRange %s is not an %s range", p.IPRange, p.Ethertype))
	}
	return nil
}

func fitsEthertype(ipRange, ethertype string) bool {
	if ipRange == "" {
		return true
	}
	prefix, err := netip.ParsePrefix(ipRange)
	if err != nil { // an address without a length is a range, too
		address, err := netip.ParseAddr(ipRange)
		if err != nil {
			return false
		}
		prefix = netip.PrefixFrom(address, address.BitLen())
	}
	return prefix.Addr().Is4() == (ethertype == ethertypeIPv4)
}

// protocols are the protocols that the document names, with IANA's numbers.
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

// protocolNumber reads a name or a number. An empty value is nil, any protocol. It is
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
