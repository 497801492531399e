// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import "regexp"

// Schemas of request bodies for networks, security groups, key pairs, affinity groups and
// images, as in the API document.
var (
	CreateNetwork = &Schema{kind: "object", required: []string{"name"}, properties: map[string]*Schema{
		"dhcp": all(Boolean),
		"ipv4": {kind: "object", oneOf: []*Schema{
			createFamily("prefix", all(CIDRv4), map[string]*Schema{"gateway": GatewayIPv4, "nameservers": NameserversIPv4}),
			createFamily("prefixLength", integerIn(8, 29), map[string]*Schema{"nameservers": NameserversIPv4}),
		}},
		"ipv6": {kind: "object", oneOf: []*Schema{
			createFamily("prefix", CIDRv6, map[string]*Schema{"gateway": GatewayIPv6, "nameservers": NameserversIPv6}),
			createFamily("prefixLength", integerIn(56, 128), map[string]*Schema{"nameservers": NameserversIPv6}),
		}},
		"labels":         Object,
		"name":           GenericName,
		"routed":         Boolean,
		"routingTableId": UUID,
		"vpcId":          all(UUID),
	}}

	UpdateNetwork = &Schema{kind: "object", properties: map[string]*Schema{
		"dhcp":           Boolean,
		"ipv4":           {kind: "object", properties: map[string]*Schema{"gateway": GatewayIPv4, "nameservers": NameserversIPv4}},
		"ipv6":           {kind: "object", properties: map[string]*Schema{"gateway": GatewayIPv6, "nameservers": NameserversIPv6}},
		"labels":         Object,
		"name":           GenericName,
		"routed":         Boolean,
		"routingTableId": UUID,
	}}

	CreateSecurityGroup = &Schema{kind: "object", required: []string{"name"}, properties: map[string]*Schema{
		"createdAt":   ReadOnly,
		"description": Description,
		"id":          ReadOnly,
		"labels":      Object,
		"name":        GenericName,
		"rules":       ReadOnly,
		"stateful":    Boolean,
		"updatedAt":   ReadOnly,
	}}

	UpdateSecurityGroup = &Schema{kind: "object", properties: map[string]*Schema{
		"description": Description, "labels": Object, "name": GenericName,
	}}

	CreateSecurityGroupRule = &Schema{allOf: []*Schema{
		{kind: "object", required: []string{"direction"}, properties: map[string]*Schema{
			"createdAt":   ReadOnly,
			"description": Description,
			"direction":   Text,
			"ethertype":   Text,
			"icmpParameters": {kind: "object", required: []string{"type", "code"}, properties: map[string]*Schema{
				"code": integerIn(0, 255), "type": integerIn(0, 255),
			}},
			"id":      ReadOnly,
			"ipRange": all(CIDR),
			"portRange": {kind: "object", required: []string{"min", "max"}, properties: map[string]*Schema{
				"max": integerIn(0, 65535), "min": integerIn(0, 65535),
			}},
			"remoteSecurityGroupId": all(UUID),
			"securityGroupId":       ReadOnly,
			"updatedAt":             ReadOnly,
		}},
		{kind: "object", properties: map[string]*Schema{"protocol": {oneOf: []*Schema{integerIn(0, 255), Text}}}},
	}}

	CreateKeypair = &Schema{kind: "object", required: []string{"publicKey"}, properties: map[string]*Schema{
		"createdAt":   ReadOnly,
		"fingerprint": ReadOnly,
		"labels":      Object,
		"name":        KeyPairName,
		"publicKey":   {kind: "string", pattern: regexp.MustCompile(patternSSHPublicKey)},
		"updatedAt":   ReadOnly,
	}}

	UpdateKeypair = &Schema{kind: "object", properties: map[string]*Schema{"labels": Object}}

	CreateAffinityGroup = &Schema{kind: "object", required: []string{"name", "policy"}, properties: map[string]*Schema{
		"id": ReadOnly, "members": ReadOnlyPlain, "name": GenericName, "policy": Text,
	}}

	CreateImage = &Schema{kind: "object", required: []string{"name", "diskFormat"}, properties: map[string]*Schema{
		"agent":          ImageAgent,
		"checksum":       ReadOnly,
		"config":         ImageConfig,
		"createdAt":      ReadOnly,
		"diskFormat":     Text,
		"id":             ReadOnly,
		"importProgress": ReadOnly,
		"labels":         Object,
		"minDiskSize":    Integer,
		"minRam":         Integer,
		"name":           GenericName,
		"owner":          ReadOnly,
		"protected":      Boolean,
		"scope":          ReadOnly,
		"size":           ReadOnly,
		"status":         ReadOnly,
		"updatedAt":      ReadOnly,
	}}

	UpdateImage = &Schema{kind: "object", properties: map[string]*Schema{
		"agent":       ImageAgent,
		"config":      ImageConfig,
		"diskFormat":  Text,
		"labels":      Object,
		"minDiskSize": Integer,
		"minRam":      Integer,
		"name":        GenericName,
		"protected":   Boolean,
	}}

	ImageAgent = &Schema{kind: "object", properties: map[string]*Schema{
		"provisionByDefault": Boolean, "supported": Boolean,
	}}
)

const patternSSHPublicKey = `^(ssh-rsa|ssh-ed25519|ecdsa-sha2-nistp(256|384|521))\s+[A-Za-z0-9+/]+[=]{0,3}(\s+.+)?\s*$`

// Schemas of parts of network requests.
var (
	CIDRv4          = &Schema{kind: "string", pattern: regexp.MustCompile(patternCIDRv4)}
	CIDRv6          = &Schema{kind: "string", pattern: regexp.MustCompile(patternCIDRv6)}
	IPv4            = &Schema{kind: "string", pattern: regexp.MustCompile(patternIPv4)}
	GatewayIPv4     = &Schema{kind: "string", nullable: true, pattern: regexp.MustCompile(patternIPv4)}
	GatewayIPv6     = &Schema{kind: "string", nullable: true, pattern: regexp.MustCompile(patternIPv6)}
	NameserversIPv4 = &Schema{kind: "array", maxItems: 3, items: IPv4}
	NameserversIPv6 = &Schema{kind: "array", maxItems: 3, items: IPv6}
	// ReadOnlyPlain is ReadOnly for a property that the document does not wrap in allOf.
	ReadOnlyPlain = &Schema{readOnly: true}
)

func integerIn(min, max float64) *Schema {
	return &Schema{kind: "integer", limits: &limits{min, max}}
}

// createFamily is the schema of one of the two ways to ask for a network's prefix.
func createFamily(how string, value *Schema, properties map[string]*Schema) *Schema {
	properties[how], properties["vpcNetworkRangeId"] = value, UUID
	return &Schema{kind: "object", required: []string{how}, properties: properties}
}
