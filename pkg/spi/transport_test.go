// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// STACKIT's edge resets connections that were idle for longer than 30 s. A POST on one of them is lost, and its
// sender cannot know that: calls after a pause must not use it.
func TestNoCallIsLostOnAConnectionThatWasIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, opened, posts := iaasmock.New(iaasmock.WithoutAuthentication()), 0, 0
		api := conformance.Watch(t, cloud)
		transport := NewTransport()
		defer transport.CloseIdleConnections()
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			opened++
			client, server := net.Pipe()
			go serveAsEdge(server, api)
			return client, nil
		}
		session := sessionWith(t, transport, 0.5)
		for _, pause := range []struct {
			idle   time.Duration
			opened int
		}{{0, 1}, {10 * time.Second, 1}, {30*time.Second - time.Millisecond, 1}, {30*time.Second + time.Millisecond, 2},
			{5 * time.Minute, 3}} {
			<-time.After(pause.idle)
			for _, call := range []string{"POST", "LIST"} {
				if err := apiCalls[call](t.Context(), session.API); err != nil {
					t.Errorf("%s after a pause of %s: %v", call, pause.idle, err)
				}
				synctest.Wait() // the connection is back in the pool
			}
			if posts++; len(cloud.Servers()) != posts {
				t.Fatalf("%d servers after a pause of %s, want %d", len(cloud.Servers()), pause.idle, posts)
			}
			if opened != pause.opened {
				t.Errorf("%d connections after a pause of %s, want %d", opened, pause.idle, pause.opened)
			}
		}
	})
}

// serveAsEdge serves a connection of HTTP/1.1 until it was idle for longer than 30 s: then it drops what comes.
func serveAsEdge(conn net.Conn, api http.Handler) {
	defer func() { _ = conn.Close() }()
	requests := bufio.NewReader(conn)
	for {
		idleSince := time.Now()
		request, err := http.ReadRequest(requests)
		if err != nil || time.Since(idleSince) > 30*time.Second {
			return
		}
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		response := answer.Result()
		response.ContentLength = int64(answer.Body.Len())
		if response.Write(conn) != nil {
			return
		}
	}
}

// An attempt of which nothing was written surely was not accepted. One whose answer is lost may have been. A proxy that
// refuses is named, without its credentials: net/http has only the text of its status.
func TestWhatWasNeverWrittenIsNotSent(t *testing.T) {
	hangUp := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	plain, secure := httptest.NewServer(hangUp), httptest.NewUnstartedServer(hangUp)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake
	secure.StartTLS()
	closed := httptest.NewServer(hangUp)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no way through", http.StatusForbidden)
	}))
	for _, server := range []*httptest.Server{plain, secure, refusing} {
		defer server.Close()
	}
	closed.Close()
	for name, row := range map[string]struct {
		url, proxy string
		want       bool
		says       string
	}{
		"no connection":                {url: closed.URL, want: true},
		"no such host":                 {url: "https://iaas.invalid", want: true},
		"a proxy that cannot be asked": {url: "https://iaas.invalid", proxy: closed.URL, want: true},
		"a proxy that refuses": {url: "https://iaas.invalid", proxy: refusing.URL, want: true,
			says: refusing.Listener.Addr().String() + " refused the connection with status 403"},
		"a wrong certificate": {url: secure.URL, want: true},
		"the answer is lost":  {url: plain.URL},
	} {
		t.Run(name, func(t *testing.T) {
			transport := NewTransport()
			defer transport.CloseIdleConnections()
			transport.Proxy = func(*http.Request) (*url.URL, error) {
				if row.proxy == "" {
					return nil, nil
				}
				return url.Parse(strings.Replace(row.proxy, "http://", "http://user:s3cr3t@", 1))
			}
			err := apiCalls["POST"](t.Context(), openSessionOver(t, row.url, transport).API)
			var held *NotSentError
			if err == nil || (errors.As(err, &held) && held.Attempted) != row.want || !strings.Contains(err.Error(), row.says) ||
				strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v, want that it was not written: %t, and %q", err, row.want, row.says)
			}
		})
	}
}

// countedBody counts the bytes that are read of it.
type countedBody struct {
	io.Reader
	n int
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// An answer of any length must not fill the container's memory, nor be asked for again at once.
func TestAnAnswerIsReadTo16MiB(t *testing.T) {
	const limit, empty = 16 << 20, `{"items":[]}`
	for name, row := range map[string]struct {
		size, read int
		want       error
	}{
		"16 MiB":        {limit, limit, nil},
		"16 MiB and 1":  {limit + 1, limit + 1, ErrTooLarge},
		"five times it": {5 * limit, limit + 1, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			body := &countedBody{Reader: io.LimitReader(io.MultiReader(strings.NewReader(empty), spaces{}), int64(row.size))}
			attempts := 0
			session := sessionWith(t, roundTripper(func(*http.Request) (*http.Response, error) {
				attempts++
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
					ContentLength: -1, Body: io.NopCloser(body)}, nil
			}), 0.5)
			if err := list(t.Context(), session); !errors.Is(err, row.want) || body.n != row.read || attempts != 1 {
				t.Errorf("%d bytes were read in %d attempts, error %v; want %d in one, error %v", body.n, attempts, err, row.read,
					row.want)
			}
		})
	}
}

// spaces never ends.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// halfWay is a body that never ends.
type halfWay struct{ ctx context.Context }

func (h halfWay) Read([]byte) (int, error) { <-h.ctx.Done(); return 0, h.ctx.Err() }

func TestEveryAttemptHasADeadlineOfItsOwn(t *testing.T) {
	for name, answer := range map[string]roundTripper{
		"without an answer": func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		},
		"in the middle of the body": func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(halfWay{request.Context()})}, nil
		},
	} {
		bubble(t, name, func(t *testing.T) {
			attempts := 0
			session := sessionWith(t, roundTripper(func(request *http.Request) (*http.Response, error) {
				attempts++
				httptrace.ContextClientTrace(request.Context()).WroteHeaders()
				return answer(request)
			}), 0.5)
			var asked time.Time
			for _, call := range []struct {
				name     string
				attempts int
				each     time.Duration
			}{{"LIST", 1, 20 * time.Second}, {"GET", 1, 20 * time.Second}, {"POST", 1, 30 * time.Second},
				{"DELETE", 1, 30 * time.Second}} {
				attempts, asked = 0, time.Now()
				err := apiCalls[call.name](t.Context(), session.API)
				want := time.Duration(call.attempts) * call.each
				took := time.Since(asked)
				if err == nil || errors.Is(err, context.DeadlineExceeded) ||
					!strings.Contains(err.Error(), "within "+call.each.String()) ||
					attempts != call.attempts || took < want || took > want+10*time.Second {
					t.Errorf("%s: %d attempts in %s end with %v, want %d of %s each", call.name, attempts, took, err, call.attempts,
						call.each)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := list(ctx, session); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the caller's deadline", err)
			}
		})
	}
}
