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

// Router finds the operation of the API document that a request calls.
type Router struct{ routes routers.Router }

// NewRouter returns a Router for the operations of the document for which wanted returns true. It
// removes all other operations from the document.
func NewRouter(document *openapi3.T, wanted func(operationID string) bool) Router {
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			if !wanted(operation.OperationID) {
				item.SetOperation(method, nil)
			}
		}
		if len(item.Operations()) == 0 {
			document.Paths.Delete(path)
		}
	}
	routes, err := gorillamux.NewRouter(document)
	if err != nil {
		panic("openapi: " + err.Error()) // as above
	}
	return Router{routes}
}

// Input is a request together with its operation, which is in its Route.
type Input = openapi3filter.RequestValidationInput

// Find returns the request together with its operation, or an error with the API's message if the
// Router has no operation for the method and path.
func (r Router) Find(request *http.Request) (*Input, error) {
	route, vars, err := r.routes.FindRoute(request)
	if err != nil {
		return nil, err
	}
	return &Input{
		Request: request, PathParams: vars, Route: route,
		Options: &openapi3filter.Options{SkipSettingDefaults: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}, nil
}

// serviceNames replaces the document's schema names by STACKIT's where they differ: see
// terraform-provider-stackit issue 1501.
var serviceNames = strings.NewReplacer(
	"#/components/schemas/CreateServerPayload:", "#/components/schemas/v2CreateServer:",
)

// Refusal checks a request with this body against the document. It returns "" if the request
// matches, and STACKIT's error message otherwise.
func Refusal(input *Input, body []byte) string {
	input.Request.Body = io.NopCloser(bytes.NewReader(body))
	err := openapi3filter.ValidateRequest(context.Background(), input)
	if err == nil {
		return ""
	}
	return serviceNames.Replace(FirstLine(err))
}

// FirstLine returns the text of a kin-openapi error without the schema and value at its end, which
// STACKIT's messages do not have either.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return line
}
