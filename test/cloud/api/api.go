// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package api is a plain HTTP client of the IaaS API, and names what a run of the suite creates. It uses
// the STACKIT SDK's authentication and nothing else of the SDK or the driver, so that its results can
// contradict the driver.
package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
)

const (
	callTimeout = time.Minute
	// maxAnswer is the most bytes of an answer that are read.
	maxAnswer = 16 << 20
)

// Account is an account of a project and region.
type Account struct {
	ProjectID, Region string
	// Key is the service account key (JSON).
	Key []byte
	// Endpoint is the base URL of the IaaS API; with an empty TokenURL the key's own is used.
	Endpoint, TokenURL string
}

// Client talks to one project and region.
type Client struct {
	http http.Client
	// base is the URL of the project's region.
	base string
}

// New returns a client that sends its calls to the endpoint.
func New(a Account, endpoint string) (*Client, error) {
	transport, err := authenticated(a)
	if err != nil {
		return nil, err
	}
	return &Client{
		http: http.Client{Transport: transport, Timeout: callTimeout},
		base: endpoint + "/v2/projects/" + a.ProjectID + "/regions/" + url.PathEscape(a.Region),
	}, nil
}

// authenticated adds an access token to each request. Its errors never contain a part of the key.
func authenticated(a Account) (http.RoundTripper, error) {
	key, flow := &clients.ServiceAccountKeyResponse{}, &clients.KeyFlow{}
	err := json.Unmarshal(a.Key, key)
	if err == nil && (key.Credentials == nil || key.Credentials.PrivateKey == nil) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = flow.Init(&clients.KeyFlowConfig{
			ServiceAccountKey: key, PrivateKey: *key.Credentials.PrivateKey, TokenUrl: a.TokenURL,
		})
	}
	if err != nil {
		return nil, errors.New("STACKIT_SERVICE_ACCOUNT_KEY_PATH: no service account key with a private key")
	}
	return flow, nil
}

// Do sends one request. The path is relative to the region's; a body other than nil is sent as JSON.
// An error means that there was no answer.
func (c *Client) Do(ctx context.Context, method, path string, body any) (Answer, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set(RequestID, "req-"+rand.Text())
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		// Leave out the URL: it contains the project ID.
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return Answer{}, fmt.Errorf("%s without an answer: %w", method, err)
	}
	defer func() { _ = response.Body.Close() }()
	return ReadAnswer(response)
}

// ReadAnswer reads a response, and leaves it to the caller to close it. Without all of its body there is no
// answer.
func ReadAnswer(response *http.Response) (Answer, error) {
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: read}, nil
}

// RequestID is the header that Do sends with each request: whether the API keeps it is not known.
const RequestID = "X-Request-Id"

// Answer is an answer of the API, whatever its status.
type Answer struct {
	// Status is 0 without an answer.
	Status int
	Header http.Header
	Body   []byte
}

// Succeeded reports whether the API has executed the request.
func (a Answer) Succeeded() bool { return a.Status >= 200 && a.Status < 300 }

// Refused reports whether the API has not executed the request, and would not the next time.
func (a Answer) Refused() bool {
	return a.Status >= 400 && a.Status < 500 && a.Status != http.StatusTooManyRequests
}

// Unknown reports whether nobody knows if the API has executed the request.
func (a Answer) Unknown() bool { return a.Status == 0 || a.Status >= 500 }

// Absent reports whether the answer to a GET says that there is no such resource. Some APIs answer 403
// once a resource was deleted.
func (a Answer) Absent(deleting bool) bool {
	return a.Status == http.StatusNotFound || a.Status == http.StatusGone ||
		deleting && a.Status == http.StatusForbidden
}

// maxText is the most bytes of a body that Text returns.
const maxText = 200

// Text returns the beginning of the body, up to the end of a word: half an address looks like none to who
// hides addresses.
func (a Answer) Text() string {
	text := a.Body[:min(len(a.Body), maxText)]
	if len(a.Body) > maxText {
		text = text[:bytes.LastIndexAny(text, " \"<>\n")+1]
	}
	return strings.TrimSpace(string(text))
}

// Err is the error of a call whose answer does not tell which resources exist.
func (a Answer) Err(call string) error {
	return fmt.Errorf("%s answered %d %s", call, a.Status, a.Text())
}

// Item returns the resource in an answer, the zero value if there is none.
func Item[T any](a Answer) (item T) {
	if a.Succeeded() {
		_ = json.Unmarshal(a.Body, &item) // what is no JSON shows none
	}
	return item
}

// Items returns the items of a list; false if the answer is none, such as a gateway's page. It accepts
// null as an empty list.
func Items[T any](a Answer) (items []T, ok bool) {
	var body map[string]json.RawMessage
	if !a.Succeeded() || json.Unmarshal(a.Body, &body) != nil || body["items"] == nil {
		return nil, false
	}
	return items, json.Unmarshal(body["items"], &items) == nil
}

// Statuses of a server that the suite tells apart.
const (
	StatusActive   = "ACTIVE"
	StatusError    = "ERROR"
	StatusDeleting = "DELETING"
	StatusDeleted  = "DELETED"
)

// Server has the fields of a server that the suite reads. Only a GET with details shows NICs. Labels are an
// object without a schema in the API.
type Server struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Status       string         `json:"status"`
	ErrorMessage string         `json:"errorMessage"`
	Labels       map[string]any `json:"labels"`
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

// Pause waits for the duration. If ctx ends before, it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func list[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	answer, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	items, ok := Items[T](answer)
	if !ok {
		return nil, answer.Err("GET " + path)
	}
	return items, nil
}

// Servers lists servers; an empty selector selects all.
func (c *Client) Servers(ctx context.Context, selector string) ([]Server, error) {
	path := PathServers
	if selector != "" {
		path += "?label_selector=" + url.QueryEscape(selector)
	}
	return list[Server](ctx, c, path)
}

// NICs lists the NICs of a network.
func (c *Client) NICs(ctx context.Context, network string) ([]NIC, error) {
	return list[NIC](ctx, c, PathNICs(network))
}

// Networks lists the project's networks.
func (c *Client) Networks(ctx context.Context) ([]Network, error) {
	return list[Network](ctx, c, PathNetworks)
}

// Server returns a server with details, nil if there is none.
func (c *Client) Server(ctx context.Context, id string) (*Server, error) {
	path := PathServers + "/" + id + "?details=true"
	answer, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil || answer.Absent(false) {
		return nil, err
	}
	server := Item[Server](answer)
	if server.ID == "" {
		return nil, answer.Err("GET " + path)
	}
	return &server, nil
}
