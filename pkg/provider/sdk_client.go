// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// sdkClient is the StackitClient over the STACKIT SDK.
type sdkClient struct {
	api       iaas.DefaultAPI
	projectID string
	region    string
}

var _ StackitClient = (*sdkClient)(nil)

// NewClient returns the calls of the driver's for the session's project. Reads are not
// shared, and take no turn among the session's reads.
func NewClient(session *spi.Session, region string) StackitClient {
	return &sdkClient{api: session.API, projectID: session.ProjectID, region: region}
}

var (
	errUnreadable = errors.New("the answer cannot be read")
	errNoList     = errors.New("the answer has no list")
)

// CreateServer implements StackitClient.
func (c *sdkClient) CreateServer(ctx context.Context, request *ServerRequest) (*Server, error) {
	ctx, response := captured(ctx)
	payload := serverPayload(request)
	server, err := c.api.CreateServer(ctx, c.projectID, c.region).CreateServerPayload(payload).Execute()
	if err != nil {
		return nil, apiErrorHiding(request.Spec.UserData, callCreateServer, *response, err)
	}
	if !validation.IsUUID(server.GetId()) { // no ProviderID could name it, and no read
		return nil, &APIError{Call: callCreateServer, Err: errors.New("the answer has no server ID")}
	}
	return new(serverFromSDK(server)), nil
}

// GetServer implements StackitClient.
func (c *sdkClient) GetServer(ctx context.Context, serverID string) (*Server, error) {
	ctx, response := captured(ctx)
	server, err := c.api.GetServer(ctx, c.projectID, c.region, serverID).Execute()
	return one(callGetServer, *response, err, serverFromSDK, server, server.GetId(), serverID)
}

// ListServers implements StackitClient. It asks without details: those would
// carry every server's userData.
func (c *sdkClient) ListServers(ctx context.Context, labels map[string]string) ([]Server, error) {
	ctx, response := captured(ctx)
	request := c.api.ListServers(ctx, c.projectID, c.region)
	if len(labels) > 0 {
		request = request.LabelSelector(labelSelector(labels))
	}
	list, err := request.Execute()
	list = cmp.Or(list, &iaas.ServerListResponse{})
	return all(callListServers, *response, err, serverFromSDK, list.Items, list.AdditionalProperties)
}

// DeleteServer implements StackitClient.
func (c *sdkClient) DeleteServer(ctx context.Context, serverID string) error {
	ctx, response := captured(ctx)
	err := c.api.DeleteServer(ctx, c.projectID, c.region, serverID).Execute()
	return apiError(callDeleteServer, *response, err)
}

// ConsoleLog implements StackitClient.
func (c *sdkClient) ConsoleLog(ctx context.Context, serverID string, lines int64) (string, error) {
	ctx, response := captured(ctx)
	log, err := c.api.GetServerLog(ctx, c.projectID, c.region, serverID).Length(lines).Execute()
	return log.GetOutput(), apiError(callConsoleLog, *response, err)
}

// ListServerNICs implements StackitClient.
func (c *sdkClient) ListServerNICs(ctx context.Context, serverID string) ([]NIC, error) {
	ctx, response := captured(ctx)
	list, err := c.api.ListServerNICs(ctx, c.projectID, c.region, serverID).Execute()
	return nicsFromSDK(callListNICs, *response, err, list)
}

// ListNetworkNICs implements StackitClient.
func (c *sdkClient) ListNetworkNICs(ctx context.Context, networkID string) ([]NIC, error) {
	ctx, response := captured(ctx)
	list, err := c.api.ListNics(ctx, c.projectID, c.region, networkID).Execute()
	return nicsFromSDK(callNetworkNICs, *response, err, list)
}

func nicsFromSDK(call apiCall, response *http.Response, err error, list *iaas.NICListResponse) ([]NIC, error) {
	list = cmp.Or(list, &iaas.NICListResponse{})
	nics, err := all(call, response, err, nicFromSDK, list.Items, list.AdditionalProperties)
	// The API's order is not deterministic.
	slices.SortFunc(nics, func(a, b NIC) int { return strings.Compare(a.ID, b.ID) })
	return nics, err
}

// UpdateAllowedAddresses implements StackitClient.
func (c *sdkClient) UpdateAllowedAddresses(
	ctx context.Context, networkID, nicID string, addresses []string,
) (*NIC, error) {
	ctx, response := captured(ctx)
	payload := iaas.UpdateNicPayload{AllowedAddresses: allowedAddressesToSDK(addresses)}
	nic, err := c.api.UpdateNic(ctx, c.projectID, c.region, networkID, nicID).UpdateNicPayload(payload).Execute()
	return one(callUpdateNIC, *response, err, nicFromSDK, nic, nic.GetId(), nicID)
}

// GetNIC implements StackitClient.
func (c *sdkClient) GetNIC(ctx context.Context, networkID, nicID string) (*NIC, error) {
	ctx, response := captured(ctx)
	nic, err := c.api.GetNic(ctx, c.projectID, c.region, networkID, nicID).Execute()
	return one(callGetNIC, *response, err, nicFromSDK, nic, nic.GetId(), nicID)
}

// DeleteNIC implements StackitClient.
func (c *sdkClient) DeleteNIC(ctx context.Context, networkID, nicID string) error {
	ctx, response := captured(ctx)
	err := c.api.DeleteNic(ctx, c.projectID, c.region, networkID, nicID).Execute()
	return apiError(callDeleteNIC, *response, err)
}

// ListVolumes implements StackitClient.
func (c *sdkClient) ListVolumes(ctx context.Context) ([]Volume, error) {
	ctx, response := captured(ctx)
	list, err := c.api.ListVolumes(ctx, c.projectID, c.region).Execute()
	list = cmp.Or(list, &iaas.VolumeListResponse{})
	return all(callListVolumes, *response, err, volumeFromSDK, list.Items, list.AdditionalProperties)
}

// GetVolume implements StackitClient.
func (c *sdkClient) GetVolume(ctx context.Context, volumeID string) (*Volume, error) {
	ctx, response := captured(ctx)
	volume, err := c.api.GetVolume(ctx, c.projectID, c.region, volumeID).Execute()
	return one(callGetVolume, *response, err, volumeFromSDK, volume, volume.GetId(), volumeID)
}

// DeleteVolume implements StackitClient.
func (c *sdkClient) DeleteVolume(ctx context.Context, volumeID string) error {
	ctx, response := captured(ctx)
	err := c.api.DeleteVolume(ctx, c.projectID, c.region, volumeID).Execute()
	return apiError(callDeleteVolume, *response, err)
}

// one converts the answer to a call about one resource, which must be about the one that was
// asked for.
func one[SDK, T any](
	call apiCall, response *http.Response, err error, convert func(*SDK) T, answer *SDK, id, asked string,
) (*T, error) {
	switch {
	case err != nil:
		return nil, apiError(call, response, err)
	case id != asked:
		return nil, &APIError{Call: call, Err: fmt.Errorf("the answer is not about %s", asked)}
	default:
		return new(convert(answer)), nil
	}
}

// all converts a list. {"items":null} is an empty one, but an empty answer decodes without an
// error, too, and must not pass for "no servers": the SDK's decoder sets the additional
// properties only if it found "items".
func all[SDK, T any](
	call apiCall, response *http.Response, err error, convert func(*SDK) T, items []SDK, additional map[string]any,
) ([]T, error) {
	switch {
	case err != nil:
		return nil, apiError(call, response, err)
	case items == nil && additional == nil:
		return nil, &APIError{Call: call, Err: errNoList}
	}
	converted := make([]T, 0, len(items))
	for i := range items {
		converted = append(converted, convert(&items[i]))
	}
	return converted, nil
}

func captured(ctx context.Context) (context.Context, **http.Response) {
	response := new(*http.Response)
	return runtime.WithCaptureHTTPResponse(ctx, response), response
}

// apiError is apiErrorHiding for a call that sends no userData; nil for one that did not fail.
func apiError(call apiCall, response *http.Response, err error) error {
	if err == nil {
		return nil
	}
	return apiErrorHiding("", call, response, err)
}

// NewAPIError makes an *APIError of what the SDK answered a call with that the driver does
// not make. what names the call, in the form "reading an image"; response may be nil.
func NewAPIError(what string, response *http.Response, err error) error {
	return apiError(apiCall(what), response, err)
}

// apiErrorHiding translates the SDK's error. It looks at the status code and body
// only: the SDK's message and model depend on what the document lists.
func apiErrorHiding(userData string, call apiCall, response *http.Response, err error) error {
	translated := &APIError{Call: call}
	if response != nil {
		translated.RequestID = spi.RequestID(response.Header)
	}
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
	case answer.StatusCode < http.StatusMultipleChoices:
		// The SDK's error would repeat the body.
		translated.Err = fmt.Errorf("%w: %s", errUnreadable, redacted(answer.ErrorMessage, userData))
		return translated
	}
	translated.StatusCode = answer.StatusCode
	var body struct {
		Code    *int64  `json:"code"`
		Message *string `json:"msg"`
	}
	if json.Unmarshal(answer.Body, &body) == nil && body.Code != nil && body.Message != nil {
		translated.Message = *body.Message
	} else {
		translated.Message = passedOn(answer.Body)
	}
	translated.shown = redacted(translated.Message, userData)
	return translated
}
