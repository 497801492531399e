// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Statuses of a server that the suite tells apart.
const (
	StatusActive   = "ACTIVE"
	StatusError    = "ERROR"
	StatusDeleting = "DELETING"
	StatusDeleted  = "DELETED"
)

// Labels are shown by the API as an object without a schema: what is no text is nil here.
type Labels map[string]*string

// Get returns the value of a label, empty without one.
func (l Labels) Get(key string) string {
	if value := l[key]; value != nil {
		return *value
	}
	return ""
}

// UnmarshalJSON takes any object.
func (l *Labels) UnmarshalJSON(content []byte) error {
	var values map[string]any
	if err := json.Unmarshal(content, &values); err != nil {
		return err
	}
	*l = Labels{}
	for key, value := range values {
		if text, ok := value.(string); ok {
			(*l)[key] = &text
		} else {
			(*l)[key] = nil
		}
	}
	return nil
}

// Server is what the suite reads of a server. NICs are shown by GET with details alone.
type Server struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Status     string         `json:"status"`
	Labels     Labels         `json:"labels"`
	Metadata   map[string]any `json:"metadata"`
	CreatedAt  time.Time      `json:"createdAt"`
	BootVolume struct {
		ID string `json:"id"`
	} `json:"bootVolume"`
	Volumes []string `json:"volumes"`
	NICs    []struct {
		ID string `json:"nicId"`
	} `json:"nics"`
}

// Live says that the server exists and nobody is deleting it.
func (s Server) Live() bool { return s.Status != StatusDeleting && s.Status != StatusDeleted }

// NIC is what the suite reads of a NIC. Device is empty for one without a server.
type NIC struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	Labels           Labels   `json:"labels"`
	Device           string   `json:"device"`
	AllowedAddresses []string `json:"allowedAddresses"`
}

// Volume is what the suite reads of a volume. ServerID is empty for one without a server.
type Volume struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Labels    Labels    `json:"labels"`
	CreatedAt time.Time `json:"createdAt"`
	ServerID  string    `json:"serverId"`
}

// Paths below that of the region.
const (
	PathServers = "/servers"
	PathVolumes = "/volumes"
)

// PathNICs is the path of the network's NICs.
func (c *Client) PathNICs() string { return c.network + "/nics" }

// attempts of a read: a hiccup of the API is no finding.
const attempts = 6

// read GETs until the answer is one of the API's own about what is there: 200 or 404.
func (c *Client) read(ctx context.Context, path string) (Answer, error) {
	var problem error
	for attempt := range attempts {
		answer, err := c.Do(ctx, http.MethodGet, path, nil)
		if err == nil && (answer.Status == http.StatusOK || answer.Status == http.StatusNotFound) {
			return answer, nil
		}
		problem = cmp.Or(err, fmt.Errorf("GET %s answered %d", path, answer.Status))
		if err := Pause(ctx, time.Second<<attempt/2); err != nil {
			return Answer{}, err
		}
	}
	return Answer{}, problem
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
	answer, err := c.read(ctx, path)
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("GET %s answered %d", path, answer.Status)
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
	answer, err := c.read(ctx, path)
	if err != nil || answer.Status == http.StatusNotFound {
		return nil, err
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

// NICs lists those of the network.
func (c *Client) NICs(ctx context.Context) ([]NIC, error) { return list[NIC](ctx, c, c.PathNICs()) }

// NIC returns a NIC of the network, nil if there is none.
func (c *Client) NIC(ctx context.Context, id string) (*NIC, error) {
	return get[NIC](ctx, c, c.PathNICs()+"/"+id)
}

// Volumes lists those of the project.
func (c *Client) Volumes(ctx context.Context) ([]Volume, error) {
	return list[Volume](ctx, c, PathVolumes)
}

// Volume returns a volume, nil if there is none.
func (c *Client) Volume(ctx context.Context, id string) (*Volume, error) {
	return get[Volume](ctx, c, PathVolumes+"/"+id)
}
