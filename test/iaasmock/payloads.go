// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
)

// all wraps a schema the way the document wraps most properties; that shows in
// the messages.
func all(s *schema) *schema { return &schema{allOf: []*schema{s}} }

// Schemas of request bodies, as in the API document.
var (
	schemaNetworking = &schema{oneOf: []*schema{
		{kind: "object", closed: true, properties: map[string]*schema{"networkId": schemaUUID}},
		{kind: "object", closed: true, properties: map[string]*schema{"nicIds": schemaUUIDs}},
	}}

	schemaSource = &schema{
		kind: "object", required: []string{"type", "id"},
		properties: map[string]*schema{"id": schemaUUID, "type": schemaText},
	}

	schemaBootVolume = &schema{kind: "object", properties: map[string]*schema{
		"id":                  schemaReadOnly,
		"deleteOnTermination": schemaBoolean,
		"performanceClass":    all(schemaGenericName),
		"size":                all(schemaInteger),
		"source":              all(schemaSource),
	}}

	schemaServer = &schema{kind: "object", required: []string{"name", "machineType"}, properties: map[string]*schema{
		"affinityGroup":       all(schemaUUID),
		"agent":               {kind: "object", properties: map[string]*schema{"provisioned": schemaBoolean}},
		"availabilityZone":    all(schemaText),
		"bootVolume":          all(schemaBootVolume),
		"configDrive":         schemaBoolean,
		"createdAt":           schemaReadOnly,
		"errorMessage":        schemaReadOnly,
		"id":                  schemaReadOnly,
		"imageId":             all(schemaUUID),
		"keypairName":         all(schemaKeyPairName),
		"labels":              schemaObject,
		"launchedAt":          schemaReadOnly,
		"machineType":         all(schemaGenericName),
		"maintenanceWindow":   schemaReadOnly,
		"metadata":            schemaObject,
		"name":                schemaServerName,
		"networking":          schemaNetworking,
		"nics":                schemaReadOnly,
		"powerStatus":         schemaReadOnly,
		"securityGroups":      all(&schema{kind: "array", items: schemaGenericName}),
		"serviceAccountMails": all(&schema{kind: "array", maxItems: 1, items: schemaMail}),
		"status":              schemaReadOnly,
		"updatedAt":           schemaReadOnly,
		"userData":            all(schemaBase64),
		"volumes":             all(schemaUUIDs),
	}}

	schemaCreateServer = &schema{allOf: []*schema{schemaServer, {
		kind: "object", required: []string{"networking"},
		properties: map[string]*schema{"networking": schemaNetworking},
	}}}

	schemaUpdateServer = &schema{kind: "object", properties: map[string]*schema{
		"labels": schemaObject, "metadata": schemaObject, "name": schemaServerName,
	}}

	schemaUpdateNIC = &schema{kind: "object", properties: map[string]*schema{
		"allowedAddresses": schemaAllowedAddresses,
		"description":      schemaDescription,
		"labels":           schemaObject,
		"name":             schemaGenericName,
		"nicSecurity":      schemaBoolean,
		"securityGroups":   schemaUUIDs,
	}}

	schemaCreateNIC = &schema{kind: "object", properties: map[string]*schema{
		"allowedAddresses": schemaAllowedAddresses,
		"description":      schemaDescription,
		"device":           schemaReadOnly,
		"id":               schemaReadOnly,
		"ipv4":             schemaIP,
		"ipv6":             schemaIPv6,
		"labels":           schemaObject,
		"mac":              schemaReadOnly,
		"name":             schemaGenericName,
		"networkId":        schemaReadOnly,
		"nicSecurity":      all(schemaBoolean),
		"securityGroups":   schemaUUIDs,
		"status":           schemaReadOnlyPlain,
		"type":             schemaReadOnlyPlain,
	}}

	schemaCreateVolume = &schema{kind: "object", required: []string{"availabilityZone"}, properties: map[string]*schema{
		"availabilityZone": schemaText,
		"bootable":         all(schemaBoolean),
		"createdAt":        schemaReadOnly,
		"description":      schemaDescription,
		"encrypted":        schemaReadOnly,
		"id":               schemaReadOnly,
		"imageConfig":      schemaReadOnly,
		"labels":           schemaObject,
		"name":             schemaGenericName,
		"performanceClass": schemaGenericName,
		"serverId":         schemaReadOnly,
		"size":             schemaInteger,
		"source":           schemaSource,
		"status":           schemaReadOnly,
		"updatedAt":        schemaReadOnly,
	}}
)

// decode checks the body against the schema, known to the API by this name, and
// reads it into payload.
func (r *request) decode(name string, s *schema, payload any) *apiError {
	contentType := r.Header.Get("Content-Type")
	if len(bytes.TrimSpace(r.body)) == 0 {
		return badBody("value is required but missing")
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != jsonContentType {
		return badBody("header Content-Type has unexpected value %q", contentType)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return badBody("failed to decode request body: %v", err)
	}
	if err := s.check(value); err != nil {
		return badBody("doesn't match schema #/components/schemas/%s: %v", name, err)
	}
	if r.strictLabels {
		if err := checkLabelRules(value); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(r.body[:decoder.InputOffset()], payload); err != nil {
		return badBody("failed to decode request body: %v", err)
	}
	return nil
}

// decodeOptional is decode for a body that may be left out.
func (r *request) decodeOptional(name string, s *schema, payload any) *apiError {
	if len(r.body) == 0 {
		return nil
	}
	return r.decode(name, s, payload)
}

func badBody(format string, args ...any) *apiError {
	return badRequest("request body has an error: %s", fmt.Sprintf(format, args...))
}

// checkPathVars checks the parameters of a path as the document declares them.
func checkPathVars(vars map[string]string) *apiError {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		var s *schema
		switch {
		case name == "keypairName":
			s = schemaKeyPairName
		case name == "serviceAccountMail":
			s = schemaMail
		case name == "machineType", name == "volumePerformanceClass":
			s = schemaGenericName
		case name == "requestId":
			s = schemaRequestID
		case strings.HasSuffix(name, "Id"):
			s = schemaUUID
		default:
			continue
		}
		if err := s.check(vars[name]); err != nil {
			return badRequest("parameter %q in path has an error: %v", name, err)
		}
	}
	return nil
}
