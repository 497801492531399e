// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
)

// undocumented are the answers that the document leaves out: 409 for what is in
// use, which the mock gives only WithUnconfirmedRefusals, and beyond that what
// each line says.
var undocumented = map[string][]int{
	// Quotas are known to be refused here, but not how.
	"CreateServer": {http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests},
	"DeleteNic":    {http.StatusConflict},
}

// amend adds to the document what is known of the cloud's answers beyond it.
func amend(document *openapi3.T) error {
	if document.Components == nil {
		return errors.New("it has no schemas")
	}
	// A server without user data has null there, as the answers show that
	// Prometheus's service discovery for STACKIT is tested with.
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

// nullable is the schema or null; a schema inside allOf has to allow it, too.
func nullable(s *openapi3.Schema) *openapi3.SchemaRef {
	allowed := *s
	allowed.Nullable = true
	allowed.AllOf = nil
	for _, part := range s.AllOf {
		allowed.AllOf = append(allowed.AllOf, nullable(part.Value))
	}
	return openapi3.NewSchemaRef("", &allowed)
}
