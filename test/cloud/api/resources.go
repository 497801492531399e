// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

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
