// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package api is a plain HTTP client of the IaaS API. It uses the STACKIT SDK's authentication and
// nothing else of the SDK or the driver, so that its results can contradict the driver.
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
	// maxAnswer is the most bytes of an answer that are read.
	maxAnswer = 16 << 20
)

// Client talks to one project and region.
type Client struct {
	http *http.Client
	base string
	// path is the path of the project's region.
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

// authenticated adds an access token to each request. Its errors never contain a part of the key.
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

// Do sends one request. The path is relative to the region's; a body other than nil is sent as JSON.
// An error means that there was no answer.
func (c *Client) Do(ctx context.Context, method, path string, body any) (Answer, error) {
	return c.send(ctx, c.http, method, c.base+c.path+path, body, nil)
}

// GetWithHeader sends a GET with this header.
func (c *Client) GetWithHeader(ctx context.Context, path, name, value string) (Answer, error) {
	return c.send(ctx, c.http, http.MethodGet, c.base+c.path+path, nil, http.Header{name: {value}})
}

// GetWithoutToken sends a GET without authentication.
func (c *Client) GetWithoutToken(ctx context.Context, path string) (Answer, error) {
	return c.send(ctx, &http.Client{Timeout: callTimeout}, http.MethodGet, c.base+c.path+path, nil, nil)
}

// GetElsewhere sends a GET in another project.
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
		// Leave out the URL: it contains the project ID.
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

// Labels are an object without a schema in the API. A value that is not a string is read as "".
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

// Server has the fields of a server that the suite reads. Only a GET with details shows NICs.
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

// Live reports whether the server exists and is not being deleted.
func (s Server) Live() bool { return s.Status != StatusDeleting && s.Status != StatusDeleted }

// NIC has the fields of a NIC that the suite reads. Device is empty if the NIC has no server.
type NIC struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	Type             string   `json:"type"`
	Device           string   `json:"device"`
	AllowedAddresses []string `json:"allowedAddresses"`
}

// Volume has the fields of a volume that the suite reads. ServerID is empty if it is not attached.
type Volume struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	ServerID string `json:"serverId"`
	Bootable any    `json:"bootable"`
}

// Network has the fields of a network that the suite reads.
type Network struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Paths relative to the region's.
const (
	PathServers  = "/servers"
	PathVolumes  = "/volumes"
	PathNetworks = "/networks"
)

// PathNICs is the path of the NICs of a network.
func PathNICs(network string) string { return PathNetworks + "/" + network + "/nics" }

// AnswerError is an answer that does not tell which resources exist.
type AnswerError struct {
	Path   string
	Status int
}

func (e *AnswerError) Error() string { return fmt.Sprintf("GET %s answered %d", e.Path, e.Status) }

// IsForbidden reports whether the account lacks the permission for the request.
func IsForbidden(err error) bool {
	var answered *AnswerError
	return errors.As(err, &answered) && answered.Status == http.StatusForbidden
}

// Pause waits for the duration. If ctx ends before, it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// list accepts null as an empty list. An object without items is an error.
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
		// For instance a gateway's page: it does not tell which resources exist.
		return nil, fmt.Errorf("GET %s answered 200 without items: that is no list", path)
	}
	var items []Item
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return items, nil
}

// get returns nil if the resource does not exist.
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

// NICs lists the NICs of a network.
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

// Networks lists the project's networks.
func (c *Client) Networks(ctx context.Context) ([]Network, error) {
	return list[Network](ctx, c, PathNetworks)
}

// Network returns a network, nil if there is none.
func (c *Client) Network(ctx context.Context, id string) (*Network, error) {
	return get[Network](ctx, c, PathNetworks+"/"+id)
}
