// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "regexp"

// Schemas of request bodies for what the catalogue seeds.
var (
	schemaCreateNetwork = &schema{kind: "object", required: []string{"name"}, properties: map[string]*schema{
		"dhcp": all(schemaBoolean),
		"ipv4": {kind: "object", oneOf: []*schema{
			createFamily("prefix", all(schemaCIDRv4), map[string]*schema{"gateway": schemaGatewayIPv4, "nameservers": schemaNameserversIPv4}),
			createFamily("prefixLength", integerIn(8, 29), map[string]*schema{"nameservers": schemaNameserversIPv4}),
		}},
		"ipv6": {kind: "object", oneOf: []*schema{
			createFamily("prefix", schemaCIDRv6, map[string]*schema{"gateway": schemaGatewayIPv6, "nameservers": schemaNameserversIPv6}),
			createFamily("prefixLength", integerIn(56, 128), map[string]*schema{"nameservers": schemaNameserversIPv6}),
		}},
		"labels":         schemaObject,
		"name":           schemaGenericName,
		"routed":         schemaBoolean,
		"routingTableId": schemaUUID,
		"vpcId":          all(schemaUUID),
	}}

	schemaUpdateNetwork = &schema{kind: "object", properties: map[string]*schema{
		"dhcp":           schemaBoolean,
		"ipv4":           {kind: "object", properties: map[string]*schema{"gateway": schemaGatewayIPv4, "nameservers": schemaNameserversIPv4}},
		"ipv6":           {kind: "object", properties: map[string]*schema{"gateway": schemaGatewayIPv6, "nameservers": schemaNameserversIPv6}},
		"labels":         schemaObject,
		"name":           schemaGenericName,
		"routed":         schemaBoolean,
		"routingTableId": schemaUUID,
	}}

	schemaCreateSecurityGroup = &schema{kind: "object", required: []string{"name"}, properties: map[string]*schema{
		"createdAt":   schemaReadOnly,
		"description": schemaDescription,
		"id":          schemaReadOnly,
		"labels":      schemaObject,
		"name":        schemaGenericName,
		"rules":       schemaReadOnly,
		"stateful":    schemaBoolean,
		"updatedAt":   schemaReadOnly,
	}}

	schemaUpdateSecurityGroup = &schema{kind: "object", properties: map[string]*schema{
		"description": schemaDescription, "labels": schemaObject, "name": schemaGenericName,
	}}

	schemaCreateSecurityGroupRule = &schema{allOf: []*schema{
		{kind: "object", required: []string{"direction"}, properties: map[string]*schema{
			"createdAt":   schemaReadOnly,
			"description": schemaDescription,
			"direction":   schemaText,
			"ethertype":   schemaText,
			"icmpParameters": {kind: "object", required: []string{"type", "code"}, properties: map[string]*schema{
				"code": integerIn(0, 255), "type": integerIn(0, 255),
			}},
			"id":      schemaReadOnly,
			"ipRange": all(schemaCIDR),
			"portRange": {kind: "object", required: []string{"min", "max"}, properties: map[string]*schema{
				"max": integerIn(0, 65535), "min": integerIn(0, 65535),
			}},
			"remoteSecurityGroupId": all(schemaUUID),
			"securityGroupId":       schemaReadOnly,
			"updatedAt":             schemaReadOnly,
		}},
		{kind: "object", properties: map[string]*schema{"protocol": {oneOf: []*schema{integerIn(0, 255), schemaText}}}},
	}}

	schemaCreateKeypair = &schema{kind: "object", required: []string{"publicKey"}, properties: map[string]*schema{
		"createdAt":   schemaReadOnly,
		"fingerprint": schemaReadOnly,
		"labels":      schemaObject,
		"name":        schemaKeyPairName,
		"publicKey":   {kind: "string", pattern: regexp.MustCompile(patternSSHPublicKey)},
		"updatedAt":   schemaReadOnly,
	}}

	schemaUpdateKeypair = &schema{kind: "object", properties: map[string]*schema{"labels": schemaObject}}

	schemaCreateAffinityGroup = &schema{kind: "object", required: []string{"name", "policy"}, properties: map[string]*schema{
		"id": schemaReadOnly, "members": schemaReadOnlyPlain, "name": schemaGenericName, "policy": schemaText,
	}}

	schemaCreateImage = &schema{kind: "object", required: []string{"name", "diskFormat"}, properties: map[string]*schema{
		"agent":          schemaImageAgent,
		"checksum":       schemaReadOnly,
		"config":         schemaImageConfig,
		"createdAt":      schemaReadOnly,
		"diskFormat":     schemaText,
		"id":             schemaReadOnly,
		"importProgress": schemaReadOnly,
		"labels":         schemaObject,
		"minDiskSize":    schemaInteger,
		"minRam":         schemaInteger,
		"name":           schemaGenericName,
		"owner":          schemaReadOnly,
		"protected":      schemaBoolean,
		"scope":          schemaReadOnly,
		"size":           schemaReadOnly,
		"status":         schemaReadOnly,
		"updatedAt":      schemaReadOnly,
	}}

	schemaUpdateImage = &schema{kind: "object", properties: map[string]*schema{
		"agent":       schemaImageAgent,
		"config":      schemaImageConfig,
		"diskFormat":  schemaText,
		"labels":      schemaObject,
		"minDiskSize": schemaInteger,
		"minRam":      schemaInteger,
		"name":        schemaGenericName,
		"protected":   schemaBoolean,
	}}

	schemaImageAgent = &schema{kind: "object", properties: map[string]*schema{
		"provisionByDefault": schemaBoolean, "supported": schemaBoolean,
	}}
)

const patternSSHPublicKey = `^(ssh-rsa|ssh-ed25519|ecdsa-sha2-nistp(256|384|521))\s+[A-Za-z0-9+/]+[=]{0,3}(\s+.+)?\s*$`

// Parts of them.
var (
	schemaCIDRv4          = &schema{kind: "string", pattern: regexp.MustCompile(patternCIDRv4)}
	schemaCIDRv6          = &schema{kind: "string", pattern: regexp.MustCompile(patternCIDRv6)}
	schemaIPv4            = &schema{kind: "string", pattern: regexp.MustCompile(patternIPv4)}
	schemaGatewayIPv4     = &schema{kind: "string", nullable: true, pattern: regexp.MustCompile(patternIPv4)}
	schemaGatewayIPv6     = &schema{kind: "string", nullable: true, pattern: regexp.MustCompile(patternIPv6)}
	schemaNameserversIPv4 = &schema{kind: "array", maxItems: 3, items: schemaIPv4}
	schemaNameserversIPv6 = &schema{kind: "array", maxItems: 3, items: schemaIPv6}
	// schemaReadOnlyPlain is schemaReadOnly where the document wraps nothing.
	schemaReadOnlyPlain = &schema{readOnly: true}
)

func integerIn(min, max float64) *schema {
	return &schema{kind: "integer", limits: &limits{min, max}}
}

// createFamily is one of the two ways to ask for a network's prefix.
func createFamily(how string, value *schema, properties map[string]*schema) *schema {
	properties[how], properties["vpcNetworkRangeId"] = value, schemaUUID
	return &schema{kind: "object", required: []string{how}, properties: properties}
}
