// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "regexp"

// Schemas of the bodies that computeRoutes take, as in the API document.
var (
	schemaRequestID = &schema{kind: "string", minLength: 36, maxLength: 36, pattern: regexp.MustCompile(`^req-[0-9a-f]{32}$`)}

	schemaAttachment = &schema{kind: "object", properties: map[string]*schema{
		"deleteOnTermination": schemaBoolean, "serverId": schemaReadOnly, "volumeId": schemaReadOnly,
	}}

	schemaRescueServer = &schema{
		kind: "object", required: []string{"image"}, properties: map[string]*schema{"image": schemaUUID},
	}

	schemaResizeServer = &schema{
		kind: "object", required: []string{"machineType"}, properties: map[string]*schema{"machineType": schemaGenericName},
	}

	schemaResizeVolume = &schema{
		kind: "object", required: []string{"size"}, properties: map[string]*schema{"size": schemaInteger},
	}

	schemaNullableText = &schema{kind: "string", nullable: true}

	schemaImageConfig = &schema{kind: "object", properties: map[string]*schema{
		"architecture": schemaText, "bootMenu": schemaBoolean, "cdromBus": schemaNullableText, "diskBus": schemaNullableText,
		"nicModel": schemaNullableText, "operatingSystem": schemaText, "operatingSystemDistro": schemaNullableText,
		"operatingSystemVersion": schemaNullableText, "rescueBus": schemaNullableText, "rescueDevice": schemaNullableText,
		"secureBoot": schemaBoolean, "uefi": schemaBoolean, "videoModel": schemaNullableText, "virtioScsi": schemaBoolean,
	}}

	schemaUpdateVolume = &schema{kind: "object", properties: map[string]*schema{
		"bootable": schemaBoolean, "description": schemaDescription, "imageConfig": schemaImageConfig,
		"labels": schemaObject, "name": schemaGenericName,
	}}

	schemaPublicIP = &schema{kind: "object", properties: map[string]*schema{
		"id": schemaReadOnly, "ip": schemaReadOnly, "labels": schemaObject,
		"networkInterface": {allOf: []*schema{schemaUUID}, nullable: true},
	}}
)
