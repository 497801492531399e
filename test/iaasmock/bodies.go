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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// decode checks the body against the schema and reads it into payload. name is the
// schema's name in error messages.
func (r *request) decode(name string, s *schema.Schema, payload any) *apiError {
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
	if err := s.Check(value); err != nil {
		return badBody("doesn't match schema #/components/schemas/%s: %v", name, err)
	}
	if r.strictLabels {
		if err := checkLabelRules(value); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(r.body[:decoder.InputOffset()], payload); err != nil {
		// Source: the document: its generator's tags show that STACKIT decodes bodies
		// into Go types; so a number may be too large for one, or text may be no base64.
		return badBody("failed to decode request body: %v", err)
	}
	return nil
}

// badBody is the answer to a body that does not match the document's schema.
//
// Source: the document's schemas, with kin-openapi's message, which is STACKIT's: see
// terraform-provider-stackit issue 1501.
func badBody(format string, args ...any) *apiError {
	return badRequest("request body has an error: %s", fmt.Sprintf(format, args...))
}

// checkPathVars checks the parameters of a path as the document declares them.
func checkPathVars(vars map[string]string) *apiError {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		var s *schema.Schema
		switch {
		case name == "keypairName":
			s = schema.KeyPairName
		case name == "serviceAccountMail":
			s = schema.Mail
		case name == "machineType", name == "volumePerformanceClass":
			s = schema.GenericName
		case name == "requestId":
			s = schema.RequestID
		case strings.HasSuffix(name, "Id"):
			s = schema.UUID
		default:
			continue
		}
		if err := s.Check(vars[name]); err != nil {
			// Source: the document: the parameter's schema; the message is kin-openapi's.
			return badRequest("parameter %q in path has an error: %v", name, err)
		}
	}
	return nil
}
