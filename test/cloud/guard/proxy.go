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
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

const (
	// answerTimeout is longer than any client here waits, so that late answers count, too.
	answerTimeout = 2 * time.Minute
	maxBody       = 16 << 20
)

// Proxy is a reverse proxy that sends requests to the API unchanged.
type Proxy struct {
	guard     *Guard
	exchanges *Exchanges
	server    *http.Server
	url       string
}

// NewProxy starts a Proxy for the API with this base URL on a free local port.
func NewProxy(g *Guard, target string, exchanges *Exchanges) (*Proxy, error) {
	base, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{guard: g, exchanges: exchanges, url: "http://" + listener.Addr().String()}
	p.server = &http.Server{ReadHeaderTimeout: answerTimeout, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			r.Out.Header.Del("Accept-Encoding") // The transport asks for what it can read itself.
		},
		Transport: p,
		// Without an answer the connection is closed.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// URL is the Proxy's base URL.
func (p *Proxy) URL() string { return p.url }

// EndSpecs stops sending POSTs of servers and networks. It returns when none is in flight, since a late
// one could create something after a sweep, or when ctx ends.
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

// RoundTrip sends one request that the guard admits. It waits for the answer even if the client has
// disconnected: the answer counts.
func (p *Proxy) RoundTrip(r *http.Request) (response *http.Response, err error) {
	e := Exchange{
		Method: r.Method, Path: inRegion.ReplaceAllString(r.URL.Path, ""), Query: r.URL.Query(),
		SentID: r.Header.Get(api.RequestID), Begin: time.Now(),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	request := r.Clone(ctx)
	if r.Body != nil {
		if e.Sent, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(e.Sent))
	}
	if err := p.guard.admit(e); err != nil {
		return nil, err
	}
	if e.creates() {
		defer p.guard.creating.Done()
	}
	if response, err = http.DefaultTransport.RoundTrip(request); err == nil {
		e.Answer, err = api.ReadAnswer(response)
		_ = response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(e.Body))
	}
	e.End = time.Now()
	p.guard.observe(e)
	p.exchanges.write(e)
	return response, err
}

// Exchange is one request to the API with its answer.
type Exchange struct {
	Method string
	// Path is relative to the project's region.
	Path  string
	Query url.Values
	// SentID is the request's X-Request-Id.
	SentID string
	Sent   []byte
	api.Answer

	Begin, End time.Time
}

var (
	inRegion = regexp.MustCompile(`^.*/v2/projects/[^/]+/regions/[^/]+`)
	uuid     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// Kind names the operation, such as "GET /servers/{id}".
func (e Exchange) Kind() string { return e.Method + " " + uuid.ReplaceAllString(e.Path, "{id}") }

// Operations that the guard knows.
const (
	CreateNetwork = "POST /networks"
	ListNetworks  = "GET /networks"
	CreateServer  = "POST /servers"
	ListServers   = "GET /servers"
	GetServer     = "GET /servers/{id}"
	DeleteServer  = "DELETE /servers/{id}"
	GetVolume     = "GET /volumes/{id}"
)

func (e Exchange) creates() bool { return e.Kind() == CreateServer || e.Kind() == CreateNetwork }

// ID is the last element of the path if it is an ID; else "".
func (e Exchange) ID() string { return uuid.FindString(e.Path[strings.LastIndex(e.Path, "/")+1:]) }

// SentName is the name in the request's body.
func (e Exchange) SentName() string {
	var sent struct{ Name string }
	_ = json.Unmarshal(e.Sent, &sent) // what is no JSON has none
	return sent.Name
}
