// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Deadlines of one HTTP attempt, including its body. Reads get less time because the driver polls
// anyway, while an abandoned write leaves its outcome unknown.
const (
	readAttemptTimeout  = 20 * time.Second
	writeAttemptTimeout = 30 * time.Second
)

// timeoutError is the error of an attempt that took longer than its deadline. It is not
// context.DeadlineExceeded: that is the caller's own deadline.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("no complete answer within %s", time.Duration(e))
}

// Timeout implements net.Error.
func (timeoutError) Timeout() bool { return true }

// isTimeout reports whether an attempt failed because it took too long.
func isTimeout(err error) bool {
	var found interface{ Timeout() bool }
	return errors.As(err, &found) && found.Timeout()
}

// deadlined ends an attempt at its deadline, and marks it as not sent if nothing was written.
type deadlined struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. It may cancel the deadline's context on return, because
// the answer is already in memory (see bodyReader).
func (d *deadlined) RoundTrip(request *http.Request) (*http.Response, error) {
	timeout := writeAttemptTimeout
	if request.Method == http.MethodGet {
		timeout = readAttemptTimeout
	}
	ctx, cancel := context.WithTimeout(request.Context(), timeout)
	defer cancel()
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	if err != nil && ctx.Err() != nil && request.Context().Err() == nil {
		err = timeoutError(timeout)
	}
	if err != nil && !written.Load() {
		err = &NotSentError{Attempted: true, Err: err}
	}
	return response, err
}

const (
	// maxAnswer is the size of the largest answer, in bytes. A list of 5,000 servers has about 5 MB.
	maxAnswer = 16 << 20
	// maxTokenAnswer is the same for a token endpoint. The token becomes a header of every call.
	maxTokenAnswer = 64 << 10
	// connections is how many idle connections are kept per host, enough for concurrent calls.
	connections = 500
	// idleConnTimeout is how long an idle connection is kept: STACKIT's edge resets older ones.
	idleConnTimeout = 30 * time.Second
)

// NewTransport returns the default Transport of a PluginSPIImpl. It honours the proxy variables of
// the environment, and trusts the system's root certificates (Gardener mounts a CloudProfile's CA
// into /etc/ssl/certs).
func NewTransport() *http.Transport {
	// Kubernetes' defaults include pings: without them only the deadline of every call on a dead
	// HTTP/2 connection would reveal it.
	return utilnet.SetTransportDefaults(&http.Transport{
		MaxIdleConns:           connections,
		MaxIdleConnsPerHost:    connections,
		IdleConnTimeout:        idleConnTimeout,
		OnProxyConnectResponse: checkProxy,
	})
}

// checkProxy returns an error for a proxy that refuses to connect: that of net/http is the bare text of the
// status, such as "Forbidden". It has the proxy's host only, because its URL may have a password.
func checkProxy(_ context.Context, proxy *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the proxy %s refused the connection with status %d", proxy.Host, response.StatusCode)
}

// bodyReader sends a request and reads the whole answer. So the body counts for the attempt's
// deadline and metrics, and the retry rules see an answer that breaks off.
type bodyReader struct {
	next http.RoundTripper
	// limit is the size of the largest answer, in bytes.
	limit int
}

// RoundTrip implements http.RoundTripper.
func (b *bodyReader) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil {
		err = readBody(response, b.limit)
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

func readBody(response *http.Response, limit int) error {
	var body bytes.Buffer
	if size := response.ContentLength; size > 0 && size <= int64(limit) {
		body.Grow(int(size) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(response.Body, int64(limit)+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if body.Len() > limit {
		return fmt.Errorf("%w: larger than %d bytes", ErrTooLarge, limit)
	}
	response.Body = &wholeBody{Reader: bytes.NewReader(body.Bytes()), body: body.Bytes()}
	return nil
}

// wholeBody is the body of an answer that is in memory.
type wholeBody struct {
	*bytes.Reader
	body []byte
}

// Close implements io.Closer.
func (*wholeBody) Close() error { return nil }

// isForeign reports whether an answer is not from the API: a gateway's page, or an error without a
// message.
func isForeign(response *http.Response) bool {
	var body []byte
	if read, ok := response.Body.(*wholeBody); ok {
		body = read.body
	}
	if response.StatusCode < http.StatusMultipleChoices {
		body = bytes.TrimSpace(body)
		return len(body) > 0 && body[0] != '{'
	}
	said, _ := Message(body)
	return said == ""
}

// rewound returns a copy of the request with its body at the start.
func rewound(request *http.Request) (*http.Request, error) {
	try := request.Clone(request.Context())
	if request.GetBody == nil {
		return try, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	try.Body = body
	return try, nil
}

// refuseRedirects returns redirects as answers: the API has none, and following one would send the
// access token to another host.
func refuseRedirects(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}
