// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// openSession is one without authentication: for tests of what is below it.
func openSession(t *testing.T, endpoint string) *spi.Session {
	t.Helper()
	session, err := (&spi.PluginSPIImpl{Config: spi.Config{Endpoint: endpoint, NoAuth: true}, UserAgent: "driver/v1.2.3"}).
		Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func answerEmptyList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"items":[]}`))
}

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

func TestRequestsCarryTheUserAgent(t *testing.T) {
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		answerEmptyList(w, r)
	}))
	defer server.Close()
	if err := list(t.Context(), openSession(t, server.URL)); err != nil {
		t.Fatal(err)
	}
	if agent != "driver/v1.2.3" {
		t.Errorf("User-Agent is %q", agent)
	}
}

func TestAnAnswerThatStopsHalfWayIsReadAgain(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"items":[`))
			panic(http.ErrAbortHandler)
		}
		answerEmptyList(w, r)
	}))
	defer server.Close()
	if err := list(t.Context(), openSession(t, server.URL)); err != nil {
		t.Error(err)
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
