// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import "regexp"

// Schemas of request bodies for actions on servers, volumes, snapshots and public IPs, as
// in the API document.
var (
	RequestID = &Schema{kind: "string", minLength: 36, maxLength: 36, pattern: regexp.MustCompile(`^req-[0-9a-f]{32}$`)}

	Attachment = &Schema{kind: "object", properties: map[string]*Schema{
		"deleteOnTermination": Boolean, "serverId": ReadOnly, "volumeId": ReadOnly,
	}}

	RescueServer = &Schema{
		kind: "object", required: []string{"image"}, properties: map[string]*Schema{"image": UUID},
	}

	ResizeServer = &Schema{
		kind: "object", required: []string{"machineType"}, properties: map[string]*Schema{"machineType": GenericName},
	}

	ResizeVolume = &Schema{
		kind: "object", required: []string{"size"}, properties: map[string]*Schema{"size": Integer},
	}

	NullableText = &Schema{kind: "string", nullable: true}

	ImageConfig = &Schema{kind: "object", properties: map[string]*Schema{
		"architecture": Text, "bootMenu": Boolean, "cdromBus": NullableText, "diskBus": NullableText,
		"nicModel": NullableText, "operatingSystem": Text, "operatingSystemDistro": NullableText,
		"operatingSystemVersion": NullableText, "rescueBus": NullableText, "rescueDevice": NullableText,
		"secureBoot": Boolean, "uefi": Boolean, "videoModel": NullableText, "virtioScsi": Boolean,
	}}

	UpdateVolume = &Schema{kind: "object", properties: map[string]*Schema{
		"bootable": Boolean, "description": Description, "imageConfig": ImageConfig,
		"labels": Object, "name": GenericName,
	}}

	CreateSnapshot = &Schema{kind: "object", required: []string{"volumeId"}, properties: map[string]*Schema{
		"availabilityZone": ReadOnly, "createdAt": ReadOnly, "description": Description, "id": ReadOnly, "labels": Object,
		"name": GenericName, "size": ReadOnly, "status": ReadOnly, "updatedAt": ReadOnly, "volumeId": UUID,
	}}

	UpdateSnapshot = &Schema{kind: "object", properties: map[string]*Schema{
		"description": Description, "labels": Object, "name": GenericName,
	}}

	PublicIP = &Schema{kind: "object", properties: map[string]*Schema{
		"id": ReadOnly, "ip": ReadOnly, "labels": Object,
		"networkInterface": {allOf: []*Schema{UUID}, nullable: true},
	}}
)
