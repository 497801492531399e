// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/routers"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// handler executes an operation. A nil result is an answer without a body.
type handler func(*Cloud, *request) (any, *apiError)

// handlers are the API document's operations that the mock implements, by operationId.
var handlers = map[string]handler{
	"ListServers":         (*Cloud).listServers,
	createServerOperation: (*Cloud).createServer,
	"GetServer":           (*Cloud).getServer,
	"UpdateServer":        (*Cloud).updateServer,
	"DeleteServer":        (*Cloud).deleteServer,
	"GetServerLog":        (*Cloud).getServerLog,
	"ListServerNICs":      (*Cloud).listServerNICs,
	"ListProjectNICs":     (*Cloud).listProjectNICs,
	"GetProjectNIC":       getOne(func(c *Cloud) *collection[*nic] { return &c.nics }, namedNIC, (*Cloud).showNIC),
	"ListNics":            (*Cloud).listNetworkNICs,
	"CreateNic":           (*Cloud).createNIC,
	"UpdateNic":           (*Cloud).updateNIC,
	"DeleteNic":           (*Cloud).deleteNIC,
	"ListVolumes":         (*Cloud).listVolumes,
	"CreateVolume":        (*Cloud).createVolume,
	"GetVolume": getOne(
		func(c *Cloud) *collection[*Volume] { return &c.volumes }, namedVolume, (*Cloud).showVolume),
	"DeleteVolume": (*Cloud).deleteVolume,
	"GetNetwork": getOne(
		func(c *Cloud) *collection[*network] { return &c.networks }, namedNetwork, (*Cloud).showNetwork),
	"ListQuotas":            (*Cloud).listQuotas,
	"GetImage":              getOf(KindImage, "imageId"),
	"GetKeyPair":            getOf(KindKeypair, "keypairName"),
	"ListMachineTypes":      listOf(KindMachineType),
	"ListAvailabilityZones": (*Cloud).listAvailabilityZones,
}

// isTokenEndpoint reports whether the path is that of a token endpoint: accounts.stackit.cloud's, or the
// one of keys before 2026.
func isTokenEndpoint(path string) bool { return path == "/oauth/v2/token" || path == "/token" }

// operation is the operation of a request.
type operation struct {
	name   string
	handle handler
	vars   map[string]string // in the path
	// input is nil for the token endpoints, which are not in the document.
	input *openapi.Input
}

// find returns the operation of a request, or the API's error.
func find(r *http.Request) (operation, *apiError) {
	unknown := operation{name: fault.OperationUnknown}
	if isTokenEndpoint(r.URL.Path) {
		if r.Method != http.MethodPost {
			return unknown, missed(routers.ErrMethodNotAllowed)
		}
		return operation{name: fault.OperationToken, handle: (*Cloud).issueToken}, nil
	}
	input, err := openapi.Find(r)
	if err != nil {
		return unknown, missed(err)
	}
	name := input.Route.Operation.OperationID
	handle := handlers[name]
	if handle == nil {
		return unknown, missed(routers.ErrPathNotFound)
	}
	return operation{name: name, handle: handle, vars: input.PathParams, input: input}, nil
}

// statusOfSuccess returns the status of success of the document's operations that the mock has.
func (o operation) statusOfSuccess() int {
	switch {
	case strings.HasPrefix(o.name, "Create"):
		return http.StatusCreated
	case strings.HasPrefix(o.name, "Delete"):
		return http.StatusNoContent
	default:
		return http.StatusOK
	}
}

// missed returns the answer to a request without an operation.
//
// Source: kin-openapi's router, whose messages are STACKIT's.
func missed(err error) *apiError {
	if errors.Is(err, routers.ErrMethodNotAllowed) {
		return newError(http.StatusMethodNotAllowed, "%v", err)
	}
	return newError(http.StatusNotFound, "%v", err)
}

// decode reads the body into payload. The document has checked its form.
func (r *request) decode(payload any) *apiError {
	if err := json.NewDecoder(bytes.NewReader(r.body)).Decode(payload); err != nil {
		// Source: the document: its generator's tags show that STACKIT decodes bodies
		// into Go types; so a number may be too large, or a text may not be base64.
		return badRequest("request body has an error: failed to decode request body: %v", err)
	}
	return nil
}
