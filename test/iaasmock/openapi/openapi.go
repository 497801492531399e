// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package openapi holds the parts of STACKIT's official OpenAPI document of the IaaS API v2 that
// programs need. It checks requests against them with kin-openapi, which produces the same messages
// as STACKIT.
//
// iaas.json is generated from services/iaas/v2/iaas.json of
// https://github.com/stackitcloud/stackit-api-specifications (Apache-2.0, Copyright Schwarz
// IT KG), without descriptions, summaries and examples; its "info" names the commit and the
// date. To update it, change the commit and the date in hack/schema/api.go and run
//
//	IAAS_OPENAPI=/path/to/iaas.json make generated
package openapi

import (
	"bytes"
	"context"
	_ "embed" // for iaas.json
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

//go:embed iaas.json
var facts []byte

// Load parses iaas.json and returns a new document, which the caller may change.
func Load() *openapi3.T {
	document, err := openapi3.NewLoader().LoadFromData(facts)
	if err != nil {
		panic("openapi: " + err.Error()) // iaas.json is a part of the program
	}
	return document
}

// router has the document's operations, with a known fact that it lacks. It is made once, since that
// takes 50 ms.
var router = sync.OnceValue(func() routers.Router {
	document := Load()
	// userData is null for a server without user data: see the recorded answers in the
	// tests of Prometheus's STACKIT discovery.
	server := document.Components.Schemas["Server"].Value
	server.Properties["userData"] = nullable(server.Properties["userData"].Value)
	routes, err := gorillamux.NewRouter(document)
	if err != nil {
		panic("openapi: " + err.Error()) // as above
	}
	return routes
})

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

// Input is a request together with its operation, which is in its Route.
type Input = openapi3filter.RequestValidationInput

// Find returns the request together with its operation, or an error with the API's message if the
// document has no operation for the method and path.
func Find(request *http.Request) (*Input, error) {
	route, vars, err := router().FindRoute(request)
	if err != nil {
		return nil, err
	}
	return &Input{
		Request: request, PathParams: vars, Route: route,
		Options: &openapi3filter.Options{SkipSettingDefaults: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}, nil
}

// Refusal checks a request with this body against the document. It returns "" if the request
// matches, and STACKIT's error message otherwise.
func Refusal(input *Input, body []byte) string {
	input.Request.Body = io.NopCloser(bytes.NewReader(body))
	err := openapi3filter.ValidateRequest(context.Background(), input)
	if err == nil {
		return ""
	}
	// STACKIT's own schema has another name: see terraform-provider-stackit issue 1501.
	return strings.Replace(FirstLine(err), "/CreateServerPayload:", "/v2CreateServer:", 1)
}

// FirstLine returns the text of a kin-openapi error without the schema and value at its end, which
// STACKIT's messages do not have either.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return line
}
