// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var imageConfig = object{
	"architecture": "x86", "bootMenu": true, "cdromBus": "scsi", "diskBus": "scsi", "nicModel": "virtio", "operatingSystem": "linux",
	"operatingSystemDistro": "a", "operatingSystemVersion": "b", "rescueBus": "usb", "rescueDevice": "disk", "secureBoot": true,
	"uefi": true, "videoModel": "vga", "virtioScsi": true,
}

// bodies are requests with every property that may be sent.
var bodies = []bodyOf{
	{"POST", "/servers", object{
		"name": "a", "machineType": iaasmock.DefaultMachineType, "networking": object{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume": object{
			"size": 20, "performanceClass": "storage_premium_perf1", "deleteOnTermination": true,
			"source": object{"type": "image", "id": iaasmock.DefaultImageID},
		},
		"availabilityZone": "eu01-1", "affinityGroup": iaasmock.DefaultAffinityGroupID, "keypairName": iaasmock.DefaultKeypairName,
		"securityGroups": []any{"workers"}, "serviceAccountMails": []any{"a@sa.stackit.cloud"}, "userData": "YQ==",
		"labels": object{"a": "b"}, "metadata": object{"a": "b"}, "agent": object{"provisioned": true}, "configDrive": true,
		"volumes": []any{},
	}},
	{"POST", "/servers", object{
		"name": "a", "machineType": iaasmock.DefaultMachineType, "networking": object{"nicIds": []any{iaasmock.DefaultNICID}},
		"imageId": iaasmock.DefaultImageID, "volumes": []any{iaasmock.DefaultVolumeID},
	}},
	{"PATCH", "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + iaasmock.DefaultNICID, object{
		"name": "a", "description": "b", "allowedAddresses": []any{"10.0.0.0/8"}, "labels": object{"a": "b"}, "nicSecurity": true,
		"securityGroups": []any{iaasmock.DefaultSecurityGroupID},
	}},
	{"POST", "/networks/" + iaasmock.DefaultDualStackNetworkID + "/nics", object{
		"name": "a", "description": "b", "allowedAddresses": []any{"10.0.0.1"}, "ipv4": "10.1.7.7", "ipv6": "fd00:1::77",
		"labels": object{"a": "b"}, "nicSecurity": true, "securityGroups": []any{iaasmock.DefaultSecurityGroupID},
	}},
	{"POST", "/volumes", object{
		"availabilityZone": "eu01-1", "bootable": true, "description": "a", "labels": object{"a": "b"}, "name": "c",
		"performanceClass": "storage_premium_perf1", "size": 20, "source": object{"type": "image", "id": iaasmock.DefaultImageID},
	}},
	{"PATCH", "/volumes/" + iaasmock.DefaultVolumeID, object{
		"name": "a", "description": "b", "bootable": true, "labels": object{"a": "b"}, "imageConfig": imageConfig,
	}},
}

// bodyOf is a body and where it goes, within the region.
type bodyOf struct {
	method, path string
	body         object
}

func (b bodyOf) url() string { return inRegion + b.path }

// readOnly are the properties that some body or other must not have.
var readOnly = []string{
	"checksum", "createdAt", "device", "encrypted", "errorMessage", "fingerprint", "id", "imageConfig", "importProgress", "launchedAt",
	"mac", "maintenanceWindow", "members", "networkId", "nics", "owner", "powerStatus", "rules", "scope", "securityGroupId", "serverId",
	"size", "status", "type", "updatedAt",
}

// deviations are bodies as JSON in which one value differs.
func deviations(body object) []string {
	found := []string{"", "{", "[]", "null", "1", `"x"`}
	changed := append(variants(body), body)
	for _, name := range readOnly {
		for _, value := range []any{"x", nil} {
			with := maps.Clone(body)
			with[name] = value
			changed = append(changed, with)
		}
	}
	for _, body := range changed {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		found = append(found, string(encoded))
	}
	return found
}

// variants are the value's replacements, and itself with a replacement within.
func variants(value any) []any {
	replaced := []any{
		nil, true, 0, -1, 1.5, 127, 70000, json.Number("1e3"), json.Number("1e400"), json.Number("1e30"), "", "x", "-", "1.2.3.4", "fd00::1",
		strings.Repeat("a", 64), strings.Repeat("a", 128), strings.Repeat("a", 256), []any{}, []any{1, "x"},
		[]any{"a@b.cd", "c@d.ef", "1.2.3.4", "x"}, object{}, object{"x": 1}, object{"networkId": "x"},
	}
	switch value := value.(type) {
	case int: // just within and just beyond every limit that there is
		for _, limit := range []int{8, 29, 56, 128, 255, 65535} {
			replaced = append(replaced, limit-1, limit, limit+1)
		}
	case object:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			without := maps.Clone(value)
			delete(without, key)
			replaced = append(replaced, without)
			for _, variant := range variants(value[key]) {
				with := maps.Clone(value)
				with[key] = variant
				replaced = append(replaced, with)
			}
		}
	case []any:
		for i := range value {
			for _, variant := range variants(value[i]) {
				with := slices.Clone(value)
				with[i] = variant
				replaced = append(replaced, with)
			}
		}
	}
	return replaced
}
