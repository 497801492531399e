// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

func TestConnectionsAreReusedByManyAtATime(t *testing.T) {
	const callers = 500
	var opened atomic.Int64
	var arrived sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// All callers are there before the first is answered.
		arrived.Done()
		arrived.Wait()
		answerEmptyList(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	session := openSession(t, server.URL)
	for range 3 {
		arrived.Add(callers)
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				if err := list(t.Context(), session); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	// A connection may be on its way back to the pool when the next round begins.
	if got := opened.Load(); got > callers+callers/10 {
		t.Errorf("%d connections for 3 rounds of %d callers", got, callers)
	}
}

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

// A server of HTTP/2 may take few streams a connection. It refuses those that come before it could say so,
// POSTs among them, which are sent again; and calls at once need more connections than one.
func TestFewStreamsAConnectionHoldUpNoCall(t *testing.T) {
	const streams, pairs = 10, 3
	sessions := 50
	if testing.Short() {
		sessions = 10 // net/http waits for seconds where many are refused
	}
	var posts atomic.Int64
	var arrived sync.WaitGroup
	left := make(chan struct{}, 3*streams)
	arrived.Add(cap(left))
	for range cap(left) {
		left <- struct{}{}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("got %s, want HTTP/2", r.Proto)
		}
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		select {
		case <-left: // one of the first, which need three connections: none is answered before all are there
			arrived.Done()
			arrived.Wait()
		default:
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[], "id":"`+testServer+`", "machineType":"g2i.1", "name":"m1"}`)
	}))
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	provider := &PluginSPIImpl{Config: Config{Endpoint: server.URL, NoAuth: true}, Transport: transport}
	var group sync.WaitGroup
	for i := range sessions {
		session, err := provider.Session(Credentials{ProjectID: fmt.Sprintf("d61a8564-c8dd-4ffb-bc15-%012d", i)})
		if err != nil {
			t.Fatal(err)
		}
		for range pairs {
			for _, call := range []string{"POST", "LIST"} {
				group.Go(func() {
					if err := apiCalls[call](t.Context(), session.API); err != nil {
						t.Errorf("%s: %v", call, err)
					}
				})
			}
		}
	}
	group.Wait()
	if got := posts.Load(); got != int64(sessions*pairs) {
		t.Errorf("%d POSTs arrived, want %d", got, sessions*pairs)
	}
}

// endpointVariable tells a child process where to call. Roots and proxies are read
// from the environment once in a process's life.
const endpointVariable = "TEST_ENDPOINT"

func TestChildProcess(t *testing.T) {
	endpoint := os.Getenv(endpointVariable)
	if endpoint == "" {
		return // not a child
	}
	if err := list(context.Background(), openSession(t, endpoint)); err != nil {
		t.Fatal(err)
	}
}

// listInChild lists servers in a process with these variables.
func listInChild(t *testing.T, endpoint string, variables ...string) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildProcess$")
	command.Env = append([]string{endpointVariable + "=" + endpoint, "HOME=" + t.TempDir()}, variables...)
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	return err
}

func TestProxyVariablesAreHonoured(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Host)
		answerEmptyList(w, r)
	}))
	defer proxy.Close()
	if err := listInChild(t, "http://iaas.invalid", "HTTP_PROXY="+proxy.URL); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != "iaas.invalid" {
		t.Errorf("the proxy was asked for %v", asked.Load())
	}
}

// An attempt of which nothing was written surely was not accepted. One whose answer is lost may have been.
func TestWhatWasNeverWrittenIsNotSent(t *testing.T) {
	hangUp := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	plain, secure := httptest.NewServer(hangUp), httptest.NewUnstartedServer(hangUp)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake
	secure.StartTLS()
	closed := httptest.NewServer(hangUp)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no way through", http.StatusServiceUnavailable)
	}))
	for _, server := range []*httptest.Server{plain, secure, refusing} {
		defer server.Close()
	}
	closed.Close()
	for name, row := range map[string]struct {
		url, proxy string
		want       bool
	}{
		"no connection":                {url: closed.URL, want: true},
		"no such host":                 {url: "https://iaas.invalid", want: true},
		"a proxy that cannot be asked": {url: "https://iaas.invalid", proxy: closed.URL, want: true},
		"a proxy that refuses":         {url: "https://iaas.invalid", proxy: refusing.URL, want: true},
		"a wrong certificate":          {url: secure.URL, want: true},
		"the answer is lost":           {url: plain.URL},
	} {
		t.Run(name, func(t *testing.T) {
			transport := NewTransport()
			defer transport.CloseIdleConnections()
			transport.Proxy = func(*http.Request) (*url.URL, error) {
				if row.proxy == "" {
					return nil, nil
				}
				return url.Parse(row.proxy)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, row.url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&deadlined{&bodyReader{next: transport, limit: maxAnswer}}).RoundTrip(request)
			if err == nil || isUnwritten(err) != row.want {
				t.Errorf("got %v, want that it was not written: %t", err, row.want)
			}
		})
	}
}

// A proxy that refuses is named, with its status and without its credentials: net/http has only "Forbidden" for it.
func TestAProxyThatRefusesIsNamed(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusBadGateway,
		http.StatusServiceUnavailable} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no way through", status)
			}))
			defer proxy.Close()
			transport := NewTransport()
			defer transport.CloseIdleConnections()
			address := strings.TrimPrefix(proxy.URL, "http://")
			transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address, User: url.UserPassword("user", "s3cr3t")})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://iaas.invalid", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&deadlined{&bodyReader{next: transport, limit: maxAnswer}}).RoundTrip(request)
			want := fmt.Sprintf("the proxy %s refused the connection with status %d", address, status)
			if err == nil || err.Error() != want || !isUnwritten(err) {
				t.Errorf("got %v, want that nothing was written, and %q", err, want)
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

func TestAHeaderIsReadTo64KiB(t *testing.T) {
	for size, isRead := range map[int]bool{60 << 10: true, 70 << 10: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("A", strings.Repeat("a", size))
			answerEmptyList(w, r)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // the failure is retried
		if err := list(ctx, openSession(t, server.URL)); (err == nil) != isRead {
			t.Errorf("a header of %d bytes: %v", size, err)
		}
		cancel()
		server.Close()
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
				{"DELETE", 4, 30 * time.Second}} {
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
