// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// NewClient returns a client for the session's project and a region. Its reads are not
// shared with other callers, and are not limited by Session.Reads.
func NewClient(session *spi.Session, region string) *StackitClient {
	return &StackitClient{api: session.API, projectID: session.ProjectID, region: region}
}

var (
	errUnreadable = errors.New("the answer cannot be read")
	errNoList     = errors.New("the answer has no list")
)

// CreateServer requests a new server. After an error with an unknown outcome (outcomeUnknown in
// errors.go) the server may exist.
func (c *StackitClient) CreateServer(ctx context.Context, request *ServerRequest) (*Server, error) {
	ctx, asked := c.ask(ctx, callCreateServer)
	asked.request = request
	payload := serverPayload(request)
	_, err := c.api.CreateServer(ctx, c.projectID, c.region).CreateServerPayload(payload).Execute()
	if err != nil {
		return nil, asked.failure(err)
	}
	var made serverAnswer
	if err := asked.decode(nil, &made); err != nil {
		return nil, asked.failure(err)
	}
	if !validation.IsUUID(made.ID) { // neither a ProviderID nor a read could use it
		return nil, asked.unusable(errors.New("the answer has no server ID"))
	}
	return new(made.server()), nil
}

// GetServer reads one server. If the server does not exist, IsNotFound is true for the error.
func (c *StackitClient) GetServer(ctx context.Context, serverID string) (*Server, error) {
	ctx, asked := c.ask(ctx, callGetServer)
	_, err := c.api.GetServer(ctx, c.projectID, c.region, serverID).Execute()
	var answer serverAnswer
	err = asked.decode(err, &answer)
	return one(asked, err, (*serverAnswer).server, &answer, answer.ID, serverID)
}

// ListServers reads the servers that carry all the given labels; without labels, all servers of the
// project. The list may be older than GetServer's answer. It lacks the details, which include every
// server's userData.
func (c *StackitClient) ListServers(ctx context.Context, labels map[string]string) ([]Server, error) {
	ctx, asked := c.ask(ctx, callListServers)
	request := c.api.ListServers(ctx, c.projectID, c.region)
	if len(labels) > 0 {
		request = request.LabelSelector(labelSelector(labels))
	}
	list, err := request.Execute()
	list = cmp.Or(list, &iaas.ServerListResponse{})
	var answer struct{ Items []serverAnswer }
	err = asked.decode(err, &answer)
	servers, err := all(asked, err, (*serverAnswer).server, answer.Items, list.AdditionalProperties)
	if err != nil {
		return nil, err
	}
	// A server without an ID can be neither read nor deleted, and would count as gone if left out.
	if slices.ContainsFunc(servers, func(server Server) bool { return !validation.IsUUID(server.ID) }) {
		return nil, asked.unusable(fmt.Errorf("%w: a server has no ID", errUnreadable))
	}
	return servers, nil
}

// DeleteServer requests a server's deletion. The deletion is asynchronous.
func (c *StackitClient) DeleteServer(ctx context.Context, serverID string) error {
	ctx, asked := c.ask(ctx, callDeleteServer)
	err := c.api.DeleteServer(ctx, c.projectID, c.region, serverID).Execute()
	return asked.done(err)
}

// ListServerNICs reads the NICs of a server.
func (c *StackitClient) ListServerNICs(ctx context.Context, serverID string) ([]NIC, error) {
	ctx, asked := c.ask(ctx, callListNICs)
	list, err := c.api.ListServerNICs(ctx, c.projectID, c.region, serverID).Execute()
	return nicsFromSDK(asked, err, list)
}

// ListNetworkNICs reads all NICs of a network, including those without a server.
func (c *StackitClient) ListNetworkNICs(ctx context.Context, networkID string) ([]NIC, error) {
	ctx, asked := c.ask(ctx, callNetworkNICs)
	list, err := c.api.ListNics(ctx, c.projectID, c.region, networkID).Execute()
	return nicsFromSDK(asked, err, list)
}

func nicsFromSDK(asked *exchange, err error, list *iaas.NICListResponse) ([]NIC, error) {
	list = cmp.Or(list, &iaas.NICListResponse{})
	nics, err := all(asked, err, nicFromSDK, list.Items, list.AdditionalProperties)
	// The API's order is not deterministic.
	slices.SortFunc(nics, func(a, b NIC) int { return strings.Compare(a.ID, b.ID) })
	return nics, err
}

// UpdateAllowedAddresses replaces the allowed addresses of a NIC, and returns the updated NIC.
func (c *StackitClient) UpdateAllowedAddresses(
	ctx context.Context, networkID, nicID string, addresses []string,
) (*NIC, error) {
	ctx, asked := c.ask(ctx, callUpdateNIC)
	payload := iaas.UpdateNicPayload{AllowedAddresses: allowedAddressesToSDK(addresses)}
	nic, err := c.api.UpdateNic(ctx, c.projectID, c.region, networkID, nicID).UpdateNicPayload(payload).Execute()
	return one(asked, err, nicFromSDK, nic, nic.GetId(), nicID)
}

// DeleteNIC deletes a NIC of a Machine that came from OpenStack. The API document does not define an
// error for a NIC in use.
func (c *StackitClient) DeleteNIC(ctx context.Context, networkID, nicID string) error {
	ctx, asked := c.ask(ctx, callDeleteNIC)
	err := c.api.DeleteNic(ctx, c.projectID, c.region, networkID, nicID).Execute()
	return asked.done(err)
}

// one converts the answer to a call about one resource, whose ID must be the requested one.
func one[SDK, T any](
	asked *exchange, err error, convert func(*SDK) T, answer *SDK, id, askedID string,
) (*T, error) {
	switch {
	case err != nil:
		return nil, asked.failure(err)
	case id != askedID:
		return nil, asked.unusable(fmt.Errorf("the answer is about another resource: must be about %s", askedID))
	default:
		return new(convert(answer)), nil
	}
}

// all converts a list. {"items":null} is an empty list, but an empty answer decodes without an
// error, too, and must not count as "no servers": the SDK's decoder sets the additional properties
// only if it found "items".
func all[SDK, T any](
	asked *exchange, err error, convert func(*SDK) T, items []SDK, additional map[string]any,
) ([]T, error) {
	switch {
	case err != nil:
		return nil, asked.failure(err)
	case len(items) == 0 && additional == nil:
		return nil, asked.unusable(errNoList)
	}
	converted := make([]T, 0, len(items))
	for i := range items {
		converted = append(converted, convert(&items[i]))
	}
	return converted, nil
}

// exchange is one call of the API and its answer. Only here answers become errors.
type exchange struct {
	call      apiCall
	projectID string
	// request is the server that the call creates; nil for other calls. No error may repeat its
	// userData.
	request  *ServerRequest
	response *http.Response
}

// ask starts a call. Its answer is captured through the context.
func (c *StackitClient) ask(ctx context.Context, call apiCall) (context.Context, *exchange) {
	asked := &exchange{call: call, projectID: c.projectID}
	return runtime.WithCaptureHTTPResponse(ctx, &asked.response), asked
}

// decode decodes the body of a successful answer into a type of ours, also if the SDK's decoder refused
// it with err: for one unexpected field of one server it refuses a whole list. It returns err if there is no
// such answer.
func (e *exchange) decode(err error, answer any) error {
	var refused *oapierror.GenericOpenAPIError
	isRefused := errors.As(err, &refused) && refused.StatusCode < http.StatusMultipleChoices
	if e.response == nil || err != nil && !isRefused {
		return err
	}
	body, readErr := io.ReadAll(e.response.Body)
	if readErr != nil || json.Unmarshal(body, answer) != nil {
		return cmp.Or(err, errUnreadable)
	}
	return nil
}

// NewAPIError returns the *APIError of a failed SDK call, for calls that the driver itself does not
// make; nil if err is nil. what describes the call, such as "reading an image"; response may be nil.
func NewAPIError(what string, response *http.Response, err error) error {
	return (&exchange{call: apiCall(what), response: response}).failure(err)
}

// unusable returns the error for an answer in the API's form without the requested content.
func (e *exchange) unusable(err error) error {
	translated := e.translated()
	translated.Err = err
	return translated
}

func (e *exchange) translated() *APIError {
	translated := &APIError{Call: e.call, projectID: e.projectID}
	translated.isExclusive = e.request != nil && e.request.Spec.IsExclusive()
	if e.response != nil {
		translated.RequestID = spi.RequestID(e.response.Header)
	}
	return translated
}

func (e *exchange) redacted(message string) string {
	if e.request == nil {
		return redacted(message)
	}
	return redacted(message, e.request.Spec.UserData)
}

// done is failure for a call without content in its answer: 204 by the document. Among other
// statuses of success, only an answer with no body or an empty object counts; all others are a
// gateway's.
func (e *exchange) done(err error) error {
	if err != nil || e.response == nil || e.response.StatusCode == http.StatusNoContent { // which has no body
		return e.failure(err)
	}
	body, err := io.ReadAll(e.response.Body)
	var object map[string]any
	if err == nil && (len(bytes.TrimSpace(body)) == 0 || json.Unmarshal(body, &object) == nil && len(object) == 0) {
		return nil
	}
	page := e.translated()
	page.StatusCode = e.response.StatusCode
	return page
}

// failure translates the SDK's error; nil if the call succeeded. It uses only the status code and
// body: the SDK's message and model depend on the statuses in the document.
func (e *exchange) failure(err error) error {
	if err == nil {
		return nil
	}
	translated := e.translated()
	var answer *oapierror.GenericOpenAPIError
	var notSent *spi.NotSentError
	switch {
	case errors.As(err, &notSent):
		// A failed token request carries the SDK's error type too, with the token
		// endpoint's status code.
		translated.Err, translated.StatusCode = err, notSent.StatusCode
		return translated
	case !errors.As(err, &answer):
		translated.Err = err
		return translated
	case answer.StatusCode < http.StatusMultipleChoices && json.Valid(answer.Body):
		// The SDK's error would repeat the body.
		translated.Err = fmt.Errorf("%w: %s", errUnreadable, e.redacted(answer.ErrorMessage))
		return translated
	}
	translated.StatusCode = answer.StatusCode
	if answer.StatusCode >= http.StatusMultipleChoices {
		translated.Message, translated.isOfIaaS = spi.Message(answer.Body)
	}
	translated.shown = e.redacted(translated.Message)
	klog.V(4).InfoS("API refused a call", "call", e.call, "status", answer.StatusCode, "message", translated.shown,
		"requestID", translated.RequestID)
	return translated
}
