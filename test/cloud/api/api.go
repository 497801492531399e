// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package api is a plain client of the IaaS API: what it sends and what it gets is what
// goes over the wire, with the STACKIT SDK's authentication and nothing else of the driver's
// or the SDK's. So it can contradict the driver.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
)

const (
	callTimeout = time.Minute
	// maxAnswer bounds what is read of an answer, bytes.
	maxAnswer = 16 << 20
)

// Client talks to one project and region.
type Client struct {
	http *http.Client
	base string
	// path is that of the region in the project.
	path string
}

// New returns a client that sends its calls to the base URL.
func New(s settings.Settings, base string) (*Client, error) {
	transport, err := authenticated(s)
	if err != nil {
		return nil, err
	}
	return &Client{
		http: &http.Client{Transport: transport, Timeout: callTimeout}, base: base,
		path: "/v2/projects/" + s.ProjectID + "/regions/" + url.PathEscape(s.Region),
	}, nil
}

// authenticated adds an access token to each request. Its errors have no part of the key.
func authenticated(s settings.Settings) (http.RoundTripper, error) {
	key, flow := &clients.ServiceAccountKeyResponse{}, &clients.KeyFlow{}
	err := json.Unmarshal(s.Key, key)
	if err == nil && (key.Credentials == nil || key.Credentials.PrivateKey == nil) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = flow.Init(&clients.KeyFlowConfig{ServiceAccountKey: key, PrivateKey: *key.Credentials.PrivateKey, TokenUrl: s.TokenURL})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the file is no service account key with a private key", settings.EnvKeyPath)
	}
	return flow, nil
}

// Answer is an answer of the API, whatever its status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one call. The path follows that of the region; body is sent as JSON, nil is none.
// The error says that there was no answer.
func (c *Client) Do(ctx context.Context, method, path string, body any) (Answer, error) {
	return c.send(ctx, c.http, method, c.base+c.path+path, body, nil)
}

// GetWithHeader is Do for a GET with this header.
func (c *Client) GetWithHeader(ctx context.Context, path, name, value string) (Answer, error) {
	return c.send(ctx, c.http, http.MethodGet, c.base+c.path+path, nil, http.Header{name: {value}})
}

// GetWithoutToken is Do for a GET without authentication.
func (c *Client) GetWithoutToken(ctx context.Context, path string) (Answer, error) {
	return c.send(ctx, &http.Client{Timeout: callTimeout}, http.MethodGet, c.base+c.path+path, nil, nil)
}

// GetElsewhere is Do for a GET in another project.
func (c *Client) GetElsewhere(ctx context.Context, project, region, path string) (Answer, error) {
	target := c.base + "/v2/projects/" + project + "/regions/" + region + path
	return c.send(ctx, c.http, http.MethodGet, target, nil, nil)
}

func (c *Client) send(
	ctx context.Context, client *http.Client, method, target string, body any, header http.Header,
) (Answer, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return Answer{}, err
	}
	maps.Copy(request.Header, header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		// Without the URL, which has the project.
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return Answer{}, fmt.Errorf("%s without an answer: %w", method, err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return Answer{Status: response.StatusCode, Header: response.Header, Body: read}, err
}

// Statuses of a server that the suite tells apart.
const (
	StatusCreating = "CREATING"
	StatusActive   = "ACTIVE"
	StatusError    = "ERROR"
	StatusDeleting = "DELETING"
	StatusDeleted  = "DELETED"
)

// Labels are shown by the API as an object without a schema: what is no text is empty here.
type Labels map[string]string

// UnmarshalJSON takes any object.
func (l *Labels) UnmarshalJSON(content []byte) error {
	var values map[string]any
	if err := json.Unmarshal(content, &values); err != nil {
		return err
	}
	*l = Labels{}
	for key, value := range values {
		(*l)[key], _ = value.(string)
	}
	return nil
}

// Server is what the suite reads of a server. NICs are shown by GET with details alone.
type Server struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Status       string         `json:"status"`
	ErrorMessage string         `json:"errorMessage"`
	Labels       Labels         `json:"labels"`
	Metadata     map[string]any `json:"metadata"`
	BootVolume   struct {
		ID string `json:"id"`
	} `json:"bootVolume"`
	NICs []struct {
		ID        string `json:"nicId"`
		NetworkID string `json:"networkId"`
	} `json:"nics"`
	MaintenanceWindow any `json:"maintenanceWindow"`
}

// Live says that the server exists and nobody is deleting it.
func (s Server) Live() bool { return s.Status != StatusDeleting && s.Status != StatusDeleted }

// NIC is what the suite reads of a NIC. Device is empty for one without a server.
type NIC struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	Type             string   `json:"type"`
	Device           string   `json:"device"`
	AllowedAddresses []string `json:"allowedAddresses"`
}

// Volume is what the suite reads of a volume. ServerID is empty for one without a server.
type Volume struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	ServerID string `json:"serverId"`
	Bootable any    `json:"bootable"`
}

// Network is what the suite reads of a network.
type Network struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Paths below that of the region.
const (
	PathServers  = "/servers"
	PathVolumes  = "/volumes"
	PathNetworks = "/networks"
)

// PathNICs is the path of the NICs of a network.
func PathNICs(network string) string { return PathNetworks + "/" + network + "/nics" }

// AnswerError is an answer from which nobody knows what there is.
type AnswerError struct {
	Path   string
	Status int
}

func (e *AnswerError) Error() string { return fmt.Sprintf("GET %s answered %d", e.Path, e.Status) }

// IsForbidden says that the account may not read what was asked for.
func IsForbidden(err error) bool {
	var answered *AnswerError
	return errors.As(err, &answered) && answered.Status == http.StatusForbidden
}

// Pause waits, or until ctx ends: then the error is its cause.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// list takes null for an empty list, and an object without items for none.
func list[Item any](ctx context.Context, c *Client, path string) ([]Item, error) {
	answer, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, &AnswerError{path, answer.Status}
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	raw, ok := body["items"]
	if !ok {
		// Such as a gateway's notice. It says nothing about what there is.
		return nil, fmt.Errorf("GET %s answered 200 without items: that is no list", path)
	}
	var items []Item
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return items, nil
}

// get returns nil for what is not there.
func get[Item any](ctx context.Context, c *Client, path string) (*Item, error) {
	answer, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil || answer.Status == http.StatusNotFound {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, &AnswerError{path, answer.Status}
	}
	item := new(Item)
	if err := json.Unmarshal(answer.Body, item); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return item, nil
}

// Servers lists servers; an empty selector selects all.
func (c *Client) Servers(ctx context.Context, selector string) ([]Server, error) {
	path := PathServers
	if selector != "" {
		path += "?label_selector=" + url.QueryEscape(selector)
	}
	return list[Server](ctx, c, path)
}

// Server returns a server with details, nil if there is none.
func (c *Client) Server(ctx context.Context, id string) (*Server, error) {
	return get[Server](ctx, c, PathServers+"/"+id+"?details=true")
}

// NICs lists those of a network.
func (c *Client) NICs(ctx context.Context, network string) ([]NIC, error) {
	return list[NIC](ctx, c, PathNICs(network))
}

// NIC returns a NIC of a network, nil if there is none.
func (c *Client) NIC(ctx context.Context, network, id string) (*NIC, error) {
	return get[NIC](ctx, c, PathNICs(network)+"/"+id)
}

// Volume returns a volume, nil if there is none.
func (c *Client) Volume(ctx context.Context, id string) (*Volume, error) {
	return get[Volume](ctx, c, PathVolumes+"/"+id)
}

// Networks lists those of the project.
func (c *Client) Networks(ctx context.Context) ([]Network, error) {
	return list[Network](ctx, c, PathNetworks)
}

// Network returns a network, nil if there is none.
func (c *Client) Network(ctx context.Context, id string) (*Network, error) {
	return get[Network](ctx, c, PathNetworks+"/"+id)
}
