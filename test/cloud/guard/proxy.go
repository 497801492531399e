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
	// answerTimeout is longer than any client here waits, so that late answers count, too.
	answerTimeout = 2 * time.Minute
	maxBody       = 16 << 20
)

// Observer sees all exchanges. Begun is called before a request is sent.
type Observer interface {
	Begun(Exchange)
	Observe(Exchange)
}

// Proxy is a reverse proxy that sends requests to the API unchanged.
type Proxy struct {
	guard     *Guard
	target    string
	observers []Observer
	transport http.RoundTripper
	server    *http.Server
	url       string
}

// NewProxy starts a Proxy for the API with this base URL on a free local port. The guard is its first
// observer.
func NewProxy(g *Guard, target string, observers ...Observer) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		guard: g, target: strings.TrimRight(target, "/"), observers: append([]Observer{g}, observers...),
		transport: http.DefaultTransport, url: "http://" + listener.Addr().String(),
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: answerTimeout}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// URL is the Proxy's base URL.
func (p *Proxy) URL() string { return p.url }

// EndSpecs stops sending POSTs of servers. It returns when none is in flight, since a late one could
// create a server after a sweep, or when ctx ends.
func (p *Proxy) EndSpecs(ctx context.Context) {
	p.guard.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.guard.creating.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close stops the Proxy.
func (p *Proxy) Close() { _ = p.server.Close() }

// ServeHTTP forwards one request. If the API does not answer, it closes the connection.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := inRegion.ReplaceAllString(r.URL.Path, "")
	e := Exchange{Method: r.Method, Path: path, Query: r.URL.Query(), Begin: time.Now()}
	var err error
	if e.Sent, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
		panic(http.ErrAbortHandler)
	}
	if err := p.guard.admit(e); err != nil {
		panic(http.ErrAbortHandler)
	}
	if e.Kind() == CreateServer {
		defer p.guard.creating.Done()
	}
	for _, observer := range p.observers {
		observer.Begun(e)
	}
	p.exchange(r, &e)
	e.End = time.Now()
	for _, observer := range p.observers {
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

// hopByHop are the headers that concern one connection and are not forwarded.
var hopByHop = []string{"Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Upgrade"}

// exchange sends the request and waits for its answer even if the client has disconnected: the answer
// counts.
func (p *Proxy) exchange(r *http.Request, e *Exchange) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, p.target+r.URL.RequestURI(), bytes.NewReader(e.Sent))
	if err != nil {
		return
	}
	request.Header = r.Header.Clone()
	for _, name := range hopByHop {
		request.Header.Del(name)
	}
	request.Header.Del("Accept-Encoding") // The transport asks for what it can read itself.
	response, err := p.transport.RoundTrip(request)
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
	// Path is relative to the project's region.
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

// Operations that the guard knows.
const (
	CreateNetwork = "POST /networks"
	CreateServer  = "POST /servers"
	ListServers   = "GET /servers"
	GetServer     = "GET /servers/{id}"
	PatchServer   = "PATCH /servers/{id}"
	DeleteServer  = "DELETE /servers/{id}"
)

// ID is the last element of the path if it is an ID; else "".
func (e Exchange) ID() string { return uuid.FindString(e.Path[strings.LastIndex(e.Path, "/")+1:]) }

// Succeeded reports whether the API has executed the request.
func (e Exchange) Succeeded() bool { return e.Status >= 200 && e.Status < 300 }

// Unknown reports whether the outcome of the request is unknown.
func (e Exchange) Unknown() bool { return e.Status == 0 || e.Status >= 500 }

// SentName is the name in the request's body.
func (e Exchange) SentName() string {
	var sent struct{ Name string }
	_ = json.Unmarshal(e.Sent, &sent) // what is no JSON has no name
	return sent.Name
}

// Server returns the server in the answer, the zero value if there is none.
func (e Exchange) Server() (server api.Server) {
	if e.Succeeded() {
		_ = json.Unmarshal(e.Body, &server) // what is no JSON shows none
	}
	return server
}

// Servers returns the servers in the answer; false if it is not a list of servers.
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
