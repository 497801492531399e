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
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// gatewayLimit is the size in bytes above which a gateway may refuse a body with 413,
// before the API.
const gatewayLimit = 4 << 20

// exchange is a request with its answer.
type exchange struct {
	request     *http.Request
	requestBody []byte
	// operation is the name under which the call was counted; "" if unknown.
	operation string
	status    int
	header    http.Header
	body      []byte
}

// serviceNames replaces the document's names of schemas by STACKIT's where they differ.
var serviceNames = strings.NewReplacer(
	"#/components/schemas/CreateServerPayload:", "#/components/schemas/v2CreateServer:",
)

// check returns all deviations.
func (d *Document) check(x exchange) error {
	request, err := input(d.requests, x.request)
	if err != nil {
		if x.status < http.StatusBadRequest {
			return x.deviation("answered, but the document says: %v", err)
		}
		return nil
	}
	if x.operation == fault.OperationUnknown && x.status == http.StatusNotFound {
		return nil
	}
	answer, err := input(d.answers, x.request)
	if err != nil {
		return err
	}
	return errors.Join(x.checkCount(request.Route.Operation.OperationID), x.checkRequest(request), x.checkAnswer(answer))
}

func input(router routers.Router, request *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, vars, err := router.FindRoute(request)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{
		Request: request, PathParams: vars, Route: route,
		Options: &openapi3filter.Options{SkipSettingDefaults: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}, nil
}

func (x exchange) checkCount(operationID string) error {
	if x.operation == "" || x.operation == operationID {
		return nil
	}
	return x.deviation("counted as %s, but the document calls it %s", x.operation, operationID)
}

func (x exchange) checkRequest(input *openapi3filter.RequestValidationInput) error {
	x.request.Body = io.NopCloser(bytes.NewReader(x.requestBody))
	refused := openapi3filter.ValidateRequest(context.Background(), input)
	if refused == nil {
		return x.checkFittingRequest()
	}
	message := serviceNames.Replace(firstLine(refused))
	switch {
	case x.status < http.StatusBadRequest:
		return x.deviation("accepted, but the document says: %s", message)
	case x.status == http.StatusBadRequest && x.message() != message:
		return x.deviation("refused with\n\t%s\n\tbut the service says\n\t%s", x.message(), message)
	}
	return nil
}

// checkFittingRequest checks a request that matches the document: it may be refused, but
// not with the message of a schema.
func (x exchange) checkFittingRequest() error {
	for _, words := range []string{"request body has an error: doesn't match schema", "parameter "} {
		if strings.HasPrefix(x.message(), words) {
			return x.deviation("refused with the message of a schema, but it matches the document")
		}
	}
	return nil
}

func (x exchange) checkAnswer(input *openapi3filter.RequestValidationInput) error {
	documented := input.Route.Operation.Responses.Status(x.status)
	if documented == nil {
		return x.checkUndocumented()
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: x.status, Header: x.header,
		Body: io.NopCloser(bytes.NewReader(x.body)),
	}
	if err := openapi3filter.ValidateResponse(context.Background(), response); err != nil {
		return x.deviation("%s", firstLine(err))
	}
	media := documented.Value.Content.Get(x.header.Get("Content-Type"))
	if media == nil {
		if len(x.body) > 0 {
			return x.deviation("the document has no body for this status")
		}
		return nil
	}
	if extra := unknownProperties(media.Schema, x.body); len(extra) > 0 {
		return x.deviation("the document has no properties %s", strings.Join(extra, ", "))
	}
	return nil
}

// checkUndocumented accepts a 413 for a body above gatewayLimit: a gateway refuses it
// before the API.
func (x exchange) checkUndocumented() error {
	if x.status == http.StatusRequestEntityTooLarge && len(x.requestBody) > gatewayLimit && x.message() != "" {
		return nil
	}
	return x.deviation("the document does not have this status")
}

// message returns the msg of an error; "" if the answer is no error.
func (x exchange) message() string {
	var answer struct {
		Code int
		Msg  string
	}
	if err := json.Unmarshal(x.body, &answer); err != nil || answer.Code != x.status {
		return ""
	}
	return answer.Msg
}

func (x exchange) deviation(format string, args ...any) error {
	const most = 600
	return fmt.Errorf("%s %s -> %d: %s\n\trequest  %.*s\n\tresponse %.*s", x.request.Method, x.request.URL.RequestURI(), x.status,
		fmt.Sprintf(format, args...), most, x.requestBody, most, x.body)
}

// firstLine cuts the schema and value that kin-openapi prints below, as STACKIT does.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return line
}
