// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

const (
	// answerTimeout is longer than any client here waits: what they no longer wait for is
	// counted still.
	answerTimeout = 2 * time.Minute
	maxBody       = 16 << 20
)

// Observer sees all exchanges. Begun comes before a request is sent.
type Observer interface {
	Begun(Exchange)
	Observe(Exchange)
}

// Door hands requests on to the API, as they are.
type Door struct {
	guard     *Guard
	target    string
	observers []Observer
	transport http.RoundTripper
	server    *http.Server
	url       string
}

// Open opens a door to the API with this base URL, on a free port of this computer. The guard is
// the first to observe.
func Open(g *Guard, target string, observers ...Observer) (*Door, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &Door{
		guard: g, target: strings.TrimRight(target, "/"), observers: append([]Observer{g}, observers...),
		transport: http.DefaultTransport, url: "http://" + listener.Addr().String(),
	}
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: answerTimeout}
	go func() { _ = d.server.Serve(listener) }()
	return d, nil
}

// URL is the base URL of the door.
func (d *Door) URL() string { return d.url }

// EndSpecs sends no request for a server any more. It returns when none is on its way, which may
// make one behind a sweep, or when ctx ends.
func (d *Door) EndSpecs(ctx context.Context) {
	d.guard.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.guard.creating.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close closes the door: nobody reaches the API through it any more.
func (d *Door) Close() { _ = d.server.Close() }

// ServeHTTP hands on one request. Where the API does not answer, nor does the door: the
// connection is closed.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := inRegion.ReplaceAllString(r.URL.Path, "")
	e := Exchange{Method: r.Method, Path: path, Query: r.URL.Query(), Begin: time.Now()}
	var err error
	if e.Sent, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
		panic(http.ErrAbortHandler)
	}
	if err := d.guard.admit(e); err != nil {
		panic(http.ErrAbortHandler)
	}
	if e.Kind() == CreateServer {
		defer d.guard.creating.Done()
	}
	for _, observer := range d.observers {
		observer.Begun(e)
	}
	d.exchange(r, &e)
	e.End = time.Now()
	for _, observer := range d.observers {
		observer.Observe(e)
	}
	if e.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, values := range e.Header {
		if !slices.Contains(hopByHop, name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(e.Body)
}

// hopByHop are headers about a connection, not about what it carries.
var hopByHop = []string{"Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Upgrade"}

// exchange sends the request, also for a client that has gone: the answer is counted.
func (d *Door) exchange(r *http.Request, e *Exchange) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, d.target+r.URL.RequestURI(), bytes.NewReader(e.Sent))
	if err != nil {
		return
	}
	request.Header = r.Header.Clone()
	for _, name := range hopByHop {
		request.Header.Del(name)
	}
	request.Header.Del("Accept-Encoding") // The transport asks for what it can read itself.
	response, err := d.transport.RoundTrip(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return
	}
	e.Status, e.Header, e.Body = response.StatusCode, response.Header, body
}

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
