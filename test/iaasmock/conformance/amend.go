// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
)

// undocumented are statuses the API uses, or may use, but the document lacks: 409 for
// something in use, which the mock answers only WithUnconfirmedRefusals, and those in the
// comments.
var undocumented = map[string][]int{
	// CreateServer is known to refuse an exceeded quota, but not with which status.
	"CreateServer": {http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests},
	"DeleteNic":    {http.StatusConflict},
}

// amend adds to the document what is known of STACKIT's answers beyond it.
func amend(document *openapi3.T) error {
	if document.Components == nil {
		return errors.New("it has no schemas")
	}
	// userData is null for a server without user data: see the recorded answers in the
	// tests of Prometheus's STACKIT discovery.
	server := document.Components.Schemas["Server"]
	if server == nil || server.Value.Properties["userData"] == nil {
		return errors.New("it has no user data of servers")
	}
	server.Value.Properties["userData"] = nullable(server.Value.Properties["userData"].Value)

	refusal := document.Components.Responses["Conflict"]
	if refusal == nil {
		return errors.New("it has no conflicts")
	}
	found := 0
	for _, path := range document.Paths.Map() {
		for _, operation := range path.Operations() {
			statuses, amended := undocumented[operation.OperationID]
			for _, status := range statuses {
				operation.Responses.Set(fmt.Sprint(status), refusal)
			}
			if amended {
				found++
			}
		}
	}
	if found != len(undocumented) {
		return fmt.Errorf("it has %d of %d operations", found, len(undocumented))
	}
	return nil
}

// nullable returns the schema with null allowed, also in the schemas of its allOf.
func nullable(s *openapi3.Schema) *openapi3.SchemaRef {
	allowed := *s
	allowed.Nullable = true
	allowed.AllOf = nil
	for _, part := range s.AllOf {
		allowed.AllOf = append(allowed.AllOf, nullable(part.Value))
	}
	return openapi3.NewSchemaRef("", &allowed)
}
