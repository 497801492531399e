// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// endpoint is the API's address in every rig's network.
const endpoint = "http://iaas.invalid"

// network carries connections in memory. A goroutine that waits for the other side
// blocks durably (net.Pipe consists of channels), so that a bubble's time passes
// while net/http waits for an answer.
type network struct {
	connections chan net.Conn
	closed      chan struct{}
	close       sync.Once
}

var _ net.Listener = (*network)(nil)

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case connection := <-n.connections:
		return connection, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.close.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (*network) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

// dial connects a client, whatever the address.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.connections <- server:
		return client, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
	}
}

// serve lets a real http.Server answer over the network, and returns a real client's
// transport. Both end with the test.
func serve(t testing.TB, handler http.Handler) *http.Transport {
	t.Helper()
	n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	transport := &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 500}
	go func() { _ = server.Serve(n) }()
	t.Cleanup(func() {
		if inBubble() {
			<-time.After(10 * time.Minute) // what is under way ends in its own time
		}
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return transport
}

// inBubble says whether time is virtual: there it begins in the year 2000.
func inBubble() bool { return time.Now().Year() < 2020 }
