// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import "regexp"

// Schemas of request bodies for actions on servers, volumes, snapshots and public IPs, as
// in the API document.
var (
	RequestID = &Schema{kind: "string", minLength: 36, maxLength: 36, pattern: regexp.MustCompile(`^req-[0-9a-f]{32}$`)}

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
)
