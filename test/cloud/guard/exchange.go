// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Exchange is one request to the API with its answer.
type Exchange struct {
	Method string
	// Path follows that of the project's region.
	Path  string
	Query url.Values
	Sent  []byte
	// Status is 0 without an answer.
	Status     int
	Header     http.Header
	Body       []byte
	Begin, End time.Time
}

var (
	inRegion = regexp.MustCompile(`^/v2/projects/[^/]+/regions/[^/]+`)
	uuid     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// Kind names the operation, such as "GET /servers/{id}".
func (e Exchange) Kind() string { return e.Method + " " + uuid.ReplaceAllString(e.Path, "{id}") }

// Operations that are looked at.
const (
	CreateNetwork = "POST /networks"
	CreateServer  = "POST /servers"
	ListServers   = "GET /servers"
	GetServer     = "GET /servers/{id}"
	PatchServer   = "PATCH /servers/{id}"
	DeleteServer  = "DELETE /servers/{id}"
)

// ID is the last one of the path, empty for others.
func (e Exchange) ID() string { return uuid.FindString(e.Path[strings.LastIndex(e.Path, "/")+1:]) }

// Succeeded says that the API has done what it was asked for.
func (e Exchange) Succeeded() bool { return e.Status >= 200 && e.Status < 300 }

// Unknown says that nobody knows whether the API has done what it was asked for.
func (e Exchange) Unknown() bool { return e.Status == 0 || e.Status >= 500 }

// SentName is the name in the body of a request.
func (e Exchange) SentName() string {
	var sent struct{ Name string }
	_ = json.Unmarshal(e.Sent, &sent) // what is no JSON has no name
	return sent.Name
}

// Server is the one that the answer shows, empty for none.
func (e Exchange) Server() (server api.Server) {
	if e.Succeeded() {
		_ = json.Unmarshal(e.Body, &server) // what is no JSON shows none
	}
	return server
}

// Servers are those that the answer shows, and false for an answer that is no list of servers.
func (e Exchange) Servers() ([]api.Server, bool) {
	var body struct{ Items *[]api.Server }
	if e.Kind() != ListServers || !e.Succeeded() || json.Unmarshal(e.Body, &body) != nil {
		return nil, false
	}
	if body.Items == nil {
		return nil, strings.Contains(string(e.Body), `"items"`)
	}
	return *body.Items, true
}
