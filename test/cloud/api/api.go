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
