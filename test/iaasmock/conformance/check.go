// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// Load parses the API document, once per process; this takes 50 ms. Without Load, the first checked
// call parses it. A test with a synctest bubble should call Load before the bubble, which must not
// wait for another test's parsing.
func Load() { official() }

// official finds operations in the document, extended by known facts about STACKIT's answers that
// it lacks.
var official = sync.OnceValue(func() openapi.Router {
	document := openapi.Load()
	// userData is null for a server without user data: see the recorded answers in the
	// tests of Prometheus's STACKIT discovery.
	server := document.Components.Schemas["Server"].Value
	server.Properties["userData"] = nullable(server.Properties["userData"].Value)
	return openapi.NewRouter(document, func(string) bool { return true })
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

// exchange is a request with its answer.
type exchange struct {
	request     *http.Request
	requestBody []byte
	// operation is the name by which the call was counted; "" if unknown.
	operation string
	status    int
	header    http.Header
	body      []byte
}

// check returns all deviations.
func (x exchange) check() error {
	input, err := official().Find(x.request)
	if err != nil {
		if x.status < http.StatusBadRequest {
			return x.deviation("answered, although the document says: %v", err)
		}
		return nil
	}
	if x.operation == fault.OperationUnknown && x.status == http.StatusNotFound {
		return nil
	}
	return errors.Join(x.checkRequest(input), x.checkAnswer(input))
}

func (x exchange) checkRequest(input *openapi.Input) error {
	if name := input.Route.Operation.OperationID; x.operation != "" && x.operation != name {
		return x.deviation("counted as %s, but its name in the document is %s", x.operation, name)
	}
	if x.status >= http.StatusBadRequest {
		return nil
	}
	if message := openapi.Refusal(input, x.requestBody); message != "" {
		return x.deviation("accepted, although the document says: %s", message)
	}
	return nil
}

func (x exchange) checkAnswer(input *openapi.Input) error {
	documented := input.Route.Operation.Responses.Status(x.status)
	if documented == nil {
		return x.deviation("the document does not define this status")
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: x.status, Header: x.header,
		Body: io.NopCloser(bytes.NewReader(x.body)),
	}
	if err := openapi3filter.ValidateResponse(context.Background(), response); err != nil {
		return x.deviation("%s", openapi.FirstLine(err))
	}
	media := documented.Value.Content.Get(x.header.Get("Content-Type"))
	if media == nil {
		if len(x.body) > 0 {
			return x.deviation("the document defines no body for this status")
		}
		return nil
	}
	var value any
	if err := json.Unmarshal(x.body, &value); err != nil {
		return x.deviation("%v", err)
	}
	if extra := unknownProperties("", openapi3.SchemaRefs{media.Schema}, value); len(extra) > 0 {
		return x.deviation("the document does not define the properties %s", strings.Join(extra, ", "))
	}
	return nil
}

func (x exchange) deviation(format string, args ...any) error {
	const maxShown = 600
	return fmt.Errorf("%s %s -> %d: %s\n\trequest  %.*s\n\tresponse %.*s", x.request.Method,
		x.request.URL.RequestURI(), x.status, fmt.Sprintf(format, args...), maxShown, x.requestBody, maxShown, x.body)
}

// unknownProperties returns the paths of an answer's properties that are missing in the
// schemas. The document allows additional properties nearly everywhere, but clients do not read
// undocumented properties: they are typos. Objects without documented properties, such as
// labels, are exempt.
func unknownProperties(path string, schemas openapi3.SchemaRefs, value any) []string {
	schemas = flatten(schemas)
	var unknown []string
	switch value := value.(type) {
	case []any:
		below := parts(schemas, func(s *openapi3.Schema) *openapi3.SchemaRef { return s.Items })
		for i, item := range value {
			unknown = append(unknown, unknownProperties(fmt.Sprintf("%s/%d", path, i), below, item)...)
		}
	case map[string]any:
		if !slices.ContainsFunc(schemas, func(s *openapi3.SchemaRef) bool { return len(s.Value.Properties) > 0 }) {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := parts(schemas, func(s *openapi3.Schema) *openapi3.SchemaRef { return s.Properties[name] })
			if len(below) == 0 {
				unknown = append(unknown, path+"/"+name)
				continue
			}
			unknown = append(unknown, unknownProperties(path+"/"+name, below, value[name])...)
		}
	}
	return unknown
}

// flatten returns the schemas and the schemas in their allOf, oneOf and anyOf.
func flatten(schemas openapi3.SchemaRefs) (flat openapi3.SchemaRefs) {
	for _, schema := range schemas {
		flat = append(flat, schema)
		flat = append(flat, flatten(slices.Concat(schema.Value.AllOf, schema.Value.OneOf, schema.Value.AnyOf))...)
	}
	return flat
}

// parts returns one part of each schema, where it exists.
func parts(schemas openapi3.SchemaRefs, of func(*openapi3.Schema) *openapi3.SchemaRef) (found openapi3.SchemaRefs) {
	for _, schema := range schemas {
		if part := of(schema.Value); part != nil {
			found = append(found, part)
		}
	}
	return found
}
