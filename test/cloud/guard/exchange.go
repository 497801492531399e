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
	id       = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// Kind names the operation, such as "GET /servers/{id}".
func (e Exchange) Kind() string { return e.Method + " " + id.ReplaceAllString(e.Path, "{id}") }

// Operations by which servers are made, read and deleted.
const (
	CreateServer = "POST /servers"
	ListServers  = "GET /servers"
	GetServer    = "GET /servers/{id}"
	PatchServer  = "PATCH /servers/{id}"
	DeleteServer = "DELETE /servers/{id}"
)

// ServerID is that of the path, empty for others.
func (e Exchange) ServerID() string {
	rest, _ := strings.CutPrefix(e.Path, "/servers/")
	return id.FindString(rest)
}

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

// AnsweredID is the ID in an answer.
func (e Exchange) AnsweredID() string {
	var answered struct{ ID string }
	_ = json.Unmarshal(e.Body, &answered) // what is no JSON has no ID
	return answered.ID
}
