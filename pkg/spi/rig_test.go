// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

type rig struct {
	t        *testing.T
	cloud    *iaasmock.Cloud
	url      string
	key      []byte
	sessions *PluginSPIImpl
}

func newRig(t *testing.T, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(options...)
	server := httptest.NewServer(conformance.Watch(t, cloud))
	t.Cleanup(server.Close)
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	sessions := &PluginSPIImpl{Config: Config{Endpoint: server.URL, TokenURL: server.URL + "/token"}}
	return &rig{t: t, cloud: cloud, url: server.URL, key: key, sessions: sessions}
}

func (r *rig) session() *Session {
	r.t.Helper()
	session, err := r.sessions.Session(Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(r.key)})
	if err != nil {
		r.t.Fatal(err)
	}
	return session
}

func list(ctx context.Context, session *Session) error {
	_, err := session.API.ListServers(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).Execute()
	return err
}

// openSession is one without authentication: for tests of what is below it.
func openSession(t *testing.T, endpoint string) *Session {
	t.Helper()
	session, err := (&PluginSPIImpl{Config: Config{Endpoint: endpoint, NoAuth: true}, UserAgent: "driver/v1.2.3"}).
		Session(Credentials{ProjectID: iaasmock.DefaultProjectID})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func answerEmptyList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"items":[]}`))
}

// arrivals notes when each request came, by method.
type arrivals struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (a *arrivals) RoundTrip(request *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[request.Method] = append(a.at[request.Method], time.Now())
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"items":[]}`)),
	}, nil
}
