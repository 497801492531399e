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
	"time"

	"golang.org/x/time/rate"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

const (
	// attemptTimeout is the deadline of one HTTP attempt, to the end of its body.
	attemptTimeout = 30 * time.Second
	// maxBody bounds what is read of an answer. A list of 5,000 servers has about
	// 5 MB.
	maxBody = 64 << 20
	// connections is how many are kept open to a host, for calls at a time.
	connections = 500
)

// newTransport returns the connection pool of the process. It honours the proxy
// variables and trusts the system's roots (Gardener mounts a CloudProfile's CA
// into /etc/ssl/certs).
func newTransport() *http.Transport {
	// The defaults are Kubernetes': among them pings, without which a dead HTTP/2
	// connection would be found out only by the deadline of every call on it.
	return utilnet.SetTransportDefaults(&http.Transport{
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     90 * time.Second,
	})
}

// attempts is the innermost link of the chain: one attempt of one request.
type attempts struct {
	next    http.RoundTripper
	limiter *rate.Limiter
	// writers lets one write at a time wait for the limiter, so that at most one is
	// ahead of a read.
	writers chan struct{}
	clock   clock.Clock
	timeout time.Duration
	// service is the name in the metrics; "" takes it from the path.
	service string
}

// RoundTrip waits for the rate limit, sends the request and reads the whole
// answer. Reading it here puts the body under the attempt's deadline, and an
// answer that stops half-way into the hands of the retry rules.
func (a *attempts) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := a.waitTurn(request); err != nil {
		return nil, fmt.Errorf("waiting for the API rate limit: %w", contextCause(request.Context(), err))
	}
	if still, ok := request.Context().Value(stillKey{}).(func() bool); ok && !still() {
		return nil, ErrNotSent
	}
	ctx, cancel := context.WithTimeout(request.Context(), a.timeout)
	defer cancel()
	service := a.service
	if service == "" {
		service = serviceOf(request)
	}
	done := observe(request, service, a.clock)
	response, err := a.next.RoundTrip(request.WithContext(ctx))
	if err == nil {
		err = readBody(response)
	}
	done(response, err)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// waitTurn waits for the rate limit. The limiter serves in the order of arrival,
// and a few hundred servers to create, change or delete would keep the reads waiting
// that tell what became of the others, to let them go all at once in the end.
func (a *attempts) waitTurn(request *http.Request) error {
	if a.limiter == nil {
		return nil
	}
	ctx := request.Context()
	if request.Method != http.MethodGet && a.writers != nil {
		select {
		case a.writers <- struct{}{}:
			defer func() { <-a.writers }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return a.limiter.Wait(ctx)
}

// ErrNotSent says that a request was not sent: SendIf did not allow it.
var ErrNotSent = errors.New("the request was not sent: what speaks for it has to be looked at again")

// stillKey is what SendIf keeps its question under.
type stillKey struct{}

// SendIf returns a context whose request fails with ErrNotSent unless still answers
// true when its turn comes: it may have waited for long, for the rate limit or before
// it is tried again.
func SendIf(ctx context.Context, still func() bool) context.Context {
	return context.WithValue(ctx, stillKey{}, still)
}

// contextCause turns the limiter's own error ("would exceed context deadline")
// into the context's.
func contextCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := ctx.Deadline(); ok {
		return context.DeadlineExceeded
	}
	return err
}

func readBody(response *http.Response) error {
	var body bytes.Buffer
	if size := response.ContentLength; size > 0 && size <= maxBody {
		body.Grow(int(size) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(response.Body, maxBody+1))
	closeErr := response.Body.Close()
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if closeErr != nil {
		return fmt.Errorf("closing the answer: %w", closeErr)
	}
	if body.Len() > maxBody {
		return fmt.Errorf("the answer is larger than %d bytes", maxBody)
	}
	response.Body = io.NopCloser(&body)
	return nil
}
