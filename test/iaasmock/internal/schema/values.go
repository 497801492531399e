// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import "regexp"

// The patterns of the API document, to the letter: error messages quote them.
const (
	patternUUID        = `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	patternServerName  = `^(([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])$`
	patternGenericName = `^[A-Za-z0-9]+([ /._-]*[A-Za-z0-9]+)*$`
	patternKeyPairName = `^[A-Za-z0-9@._-]*$`
	patternMail        = `[a-z0-9-]+(?:\.[a-z0-9]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?`
	// patternBase64 is the pattern for format byte.
	patternBase64 = `(^$|^[a-zA-Z0-9+/\-_]*=*$)`

	patternIPv4 = `^\s*((([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|` +
		`25[0-5]))\s*$`
	patternIPv6 = `^\s*((([0-9a-f]{1,4}:){7}([0-9a-f]{1,4}|:))|(([0-9a-f]{1,4}:){6}(:[0-9a-f]{1,4}|((25[0-5]|2[0-4]\d|1` +
		`\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})|:))|(([0-9a-f]{1,4}:){5}(((:[0-9a-f]{1,4}){1` +
		`,2})|:((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})|:))|(([0-9a-f]{1,4` +
		`}:){4}(((:[0-9a-f]{1,4}){1,3})|((:[0-9a-f]{1,4})?:((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-` +
		`4]\d|1\d\d|[1-9]?\d)){3}))|:))|(([0-9a-f]{1,4}:){3}(((:[0-9a-f]{1,4}){1,4})|((:[0-9a-f]{1,4}){0,2}:(` +
		`(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}))|:))|(([0-9a-f]{1,4}:){2}` +
		`(((:[0-9a-f]{1,4}){1,5})|((:[0-9a-f]{1,4}){0,3}:((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]` +
		`\d|1\d\d|[1-9]?\d)){3}))|:))|(([0-9a-f]{1,4}:){1}(((:[0-9a-f]{1,4}){1,6})|((:[0-9a-f]{1,4}){0,4}:((2` +
		`5[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}))|:))|(:(((:[0-9a-f]{1,4}){1` +
		`,7})|((:[0-9a-f]{1,4}){0,5}:((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){` +
		`3}))|:)))(%.+)?\s*$`
	patternIP     = "((" + patternIPv4 + ")|(" + patternIPv6 + "))"
	patternCIDRv4 = `^((25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)(\/(3[0-2]|2[0-9` +
		`]|1[0-9]|[0-9]))$`
	patternCIDRv6 = `^(([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-` +
		`fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,` +
		`4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}` +
		`){1,5}|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:)|fe80:(:[0-9a-fA-F]{` +
		`0,4}){0,4}%[0-9a-zA-Z]{1,}|::(ffff(:0{1,4}){0,1}:){0,1}((25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])\.){` +
		`3,3}(25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])|([0-9a-fA-F]{1,4}:){1,4}:((25[0-5]|(2[0-4]|1{0,1}[0-9])` +
		`{0,1}[0-9])\.){3,3}(25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9]))(\/((1(1[0-9]|2[0-8]))|([0-9][0-9])|([0-` +
		`9])))?$`
	// patternCIDR matches an IPv6 address without a length, as patternIP does: where the
	// document has oneOf the two, such an address is refused.
	patternCIDR = patternCIDRv4 + "|" + patternCIDRv6
)

// Schemas of single values.
var (
	UUID = &Schema{kind: "string", minLength: 36, maxLength: 36, pattern: regexp.MustCompile(patternUUID)}

	ServerName  = &Schema{kind: "string", maxLength: 63, pattern: regexp.MustCompile(patternServerName)}
	GenericName = &Schema{kind: "string", maxLength: 127, pattern: regexp.MustCompile(patternGenericName)}
	KeyPairName = &Schema{kind: "string", maxLength: 127, pattern: regexp.MustCompile(patternKeyPairName)}
	Mail        = &Schema{kind: "string", maxLength: 255, pattern: regexp.MustCompile(patternMail)}
	Base64      = &Schema{kind: "string", format: "byte", pattern: regexp.MustCompile(patternBase64)}
	IP          = &Schema{kind: "string", pattern: regexp.MustCompile(patternIP)}
	IPv6        = &Schema{kind: "string", pattern: regexp.MustCompile(patternIPv6)}
	CIDR        = &Schema{kind: "string", pattern: regexp.MustCompile(patternCIDR)}

	Text        = &Schema{kind: "string"}
	Description = &Schema{kind: "string", maxLength: 255}
	Integer     = &Schema{kind: "integer"}
	Boolean     = &Schema{kind: "boolean"}
	Object      = &Schema{kind: "object"}

	// ReadOnly refuses any value; the message for null is that of allOf.
	ReadOnly = &Schema{readOnly: true, allOf: []*Schema{{}}}
	// ReadOnlyPlain is ReadOnly for a property that the document does not wrap in allOf.
	ReadOnlyPlain = &Schema{readOnly: true}
	UUIDs         = &Schema{kind: "array", items: UUID}
	CIDRv4        = &Schema{kind: "string", pattern: regexp.MustCompile(patternCIDRv4)}
	Texts         = &Schema{kind: "array", items: Text}

	AllowedAddresses = &Schema{kind: "array", items: &Schema{oneOf: []*Schema{IP, CIDR}}}
)
