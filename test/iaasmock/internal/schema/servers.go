// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

// all wraps a schema in allOf, as the document does with most properties; the messages
// show that.
func all(s *Schema) *Schema { return &Schema{allOf: []*Schema{s}} }

// Schemas of request bodies for servers, NICs and volumes, as in the API document.
var (
	Networking = &Schema{oneOf: []*Schema{
		{kind: "object", closed: true, properties: map[string]*Schema{"networkId": UUID}},
		{kind: "object", closed: true, properties: map[string]*Schema{"nicIds": UUIDs}},
	}}

	Source = &Schema{
		kind: "object", required: []string{"type", "id"},
		properties: map[string]*Schema{"id": UUID, "type": Text},
	}

	BootVolume = &Schema{kind: "object", properties: map[string]*Schema{
		"id":                  ReadOnly,
		"deleteOnTermination": Boolean,
		"performanceClass":    all(GenericName),
		"size":                all(Integer),
		"source":              all(Source),
	}}

	Server = &Schema{kind: "object", required: []string{"name", "machineType"}, properties: map[string]*Schema{
		"affinityGroup":       all(UUID),
		"agent":               {kind: "object", properties: map[string]*Schema{"provisioned": Boolean}},
		"availabilityZone":    all(Text),
		"bootVolume":          all(BootVolume),
		"configDrive":         Boolean,
		"createdAt":           ReadOnly,
		"errorMessage":        ReadOnly,
		"id":                  ReadOnly,
		"imageId":             all(UUID),
		"keypairName":         all(KeyPairName),
		"labels":              Object,
		"launchedAt":          ReadOnly,
		"machineType":         all(GenericName),
		"maintenanceWindow":   ReadOnly,
		"metadata":            Object,
		"name":                ServerName,
		"networking":          Networking,
		"nics":                ReadOnly,
		"powerStatus":         ReadOnly,
		"securityGroups":      all(&Schema{kind: "array", items: GenericName}),
		"serviceAccountMails": all(&Schema{kind: "array", maxItems: 1, items: Mail}),
		"status":              ReadOnly,
		"updatedAt":           ReadOnly,
		"userData":            all(Base64),
		"volumes":             all(UUIDs),
	}}

	CreateServer = &Schema{allOf: []*Schema{Server, {
		kind: "object", required: []string{"networking"},
		properties: map[string]*Schema{"networking": Networking},
	}}}

	UpdateServer = &Schema{kind: "object", properties: map[string]*Schema{
		"labels": Object, "metadata": Object, "name": ServerName,
	}}

	CreateNetwork = &Schema{kind: "object", required: []string{"name"}, properties: map[string]*Schema{
		"dhcp": all(Boolean),
		"ipv4": {oneOf: []*Schema{
			{kind: "object", required: []string{"prefix"}, properties: map[string]*Schema{"prefix": all(CIDRv4), "nameservers": Texts}},
			{kind: "object", required: []string{"prefixLength"}, properties: map[string]*Schema{"prefixLength": Integer, "nameservers": Texts}},
		}},
		"labels": Object,
		"name":   GenericName,
		"routed": Boolean,
	}}

	UpdateNIC = &Schema{kind: "object", properties: map[string]*Schema{
		"allowedAddresses": AllowedAddresses,
		"description":      Description,
		"labels":           Object,
		"name":             GenericName,
		"nicSecurity":      Boolean,
		"securityGroups":   UUIDs,
	}}

	CreateNIC = &Schema{kind: "object", properties: map[string]*Schema{
		"allowedAddresses": AllowedAddresses,
		"description":      Description,
		"device":           ReadOnly,
		"id":               ReadOnly,
		"ipv4":             IP,
		"ipv6":             IPv6,
		"labels":           Object,
		"mac":              ReadOnly,
		"name":             GenericName,
		"networkId":        ReadOnly,
		"nicSecurity":      all(Boolean),
		"securityGroups":   UUIDs,
		"status":           ReadOnlyPlain,
		"type":             ReadOnlyPlain,
	}}

	CreateVolume = &Schema{kind: "object", required: []string{"availabilityZone"}, properties: map[string]*Schema{
		"availabilityZone": Text,
		"bootable":         all(Boolean),
		"createdAt":        ReadOnly,
		"description":      Description,
		"encrypted":        ReadOnly,
		"id":               ReadOnly,
		"imageConfig":      ReadOnly,
		"labels":           Object,
		"name":             GenericName,
		"performanceClass": GenericName,
		"serverId":         ReadOnly,
		"size":             Integer,
		"source":           Source,
		"status":           ReadOnly,
		"updatedAt":        ReadOnly,
	}}
)
