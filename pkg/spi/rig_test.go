// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"go.uber.org/goleak"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

type rig struct {
	t        *testing.T
	cloud    *iaasmock.Cloud
	key      []byte
	sessions *PluginSPIImpl
}

// serviceAccountKey is a key that each test's cloud accepts: making one is slow.
var serviceAccountKey = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// newRig has no network between the session and the cloud, so that virtual time can pass.
func newRig(t *testing.T, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(options...)
	key, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, cloud: cloud, key: key, sessions: &PluginSPIImpl{
		Config:    Config{Endpoint: "http://iaas.invalid"},
		Transport: inMemory(conformance.Watch(t, cloud)),
	}}
}

// inMemory answers as a server does whose handler this is.
func inMemory(handler http.Handler) roundTripper {
	return func(request *http.Request) (response *http.Response, err error) {
		answer, received := httptest.NewRecorder(), request.Clone(request.Context())
		if received.Body == nil {
			received.Body = http.NoBody
		}
		if trace := httptrace.ContextClientTrace(request.Context()); trace != nil && trace.WroteHeaders != nil {
			trace.WroteHeaders() // as net/http does
		}
		defer func() {
			lost := fmt.Errorf("connection reset: %v", recover())
			switch {
			case received.Context().Err() != nil:
				response, err = nil, received.Context().Err()
			case response != nil:
			case answer.Flushed: // half of it
				response = answer.Result()
				response.Body = io.NopCloser(io.MultiReader(response.Body, iotest.ErrReader(lost)))
			default:
				err = lost
			}
		}()
		handler.ServeHTTP(answer, received)
		return answer.Result(), nil
	}
}

// bubble runs a test of its own in virtual time: a row of a table.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func (r *rig) session() *Session {
	r.t.Helper()
	return r.sessionIn(iaasmock.DefaultProjectID)
}

// sessionIn is one with the rig's key in a project.
func (r *rig) sessionIn(projectID string) *Session {
	r.t.Helper()
	session, err := r.sessions.Session(Credentials{ProjectID: projectID, ServiceAccountKey: string(r.key)})
	if err != nil {
		r.t.Fatal(err)
	}
	return session
}

func list(ctx context.Context, session *Session) error { return apiCalls["LIST"](ctx, session.API) }

// openSession is one without authentication: for tests of what is below it.
func openSession(t *testing.T, endpoint string) *Session { return openSessionOver(t, endpoint, nil) }

func openSessionOver(t *testing.T, endpoint string, transport http.RoundTripper) *Session {
	t.Helper()
	session, err := (&PluginSPIImpl{Config: Config{Endpoint: endpoint, NoAuth: true}, Transport: transport,
		UserAgent: "driver/v1.2.3"}).Session(Credentials{ProjectID: iaasmock.DefaultProjectID})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// sessionWith is one without authentication and network, whose random numbers are all the same.
func sessionWith(t *testing.T, transport http.RoundTripper, random float64) *Session {
	t.Helper()
	sessions := &PluginSPIImpl{
		Config:    Config{Endpoint: "http://iaas.invalid", NoAuth: true},
		Transport: transport, Jitter: func() float64 { return random },
	}
	session, err := sessions.Session(Credentials{ProjectID: testProject})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func answerEmptyList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"items":[]}`))
}

// arrivals notes each request when it comes, and answers it in memory.
type arrivals struct {
	mu   sync.Mutex
	sent []arrival
	// failures is how many of the next requests are answered with the status; 0 means 503.
	failures, status int
	// retryAfter are the headers of these answers.
	retryAfter []string
}

type arrival struct {
	method string
	at     time.Time
}

func (a *arrivals) RoundTrip(request *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, arrival{request.Method, time.Now()})
	response := &http.Response{StatusCode: http.StatusOK, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}}
	body := `{"items":[], "id":"` + testServer + `", "machineType":"g2i.1", "name":"m1"}`
	if a.failures > 0 {
		a.failures--
		response.StatusCode, body = cmp.Or(a.status, http.StatusServiceUnavailable), `{}`
		if len(a.retryAfter) > 0 {
			response.Header.Set("Retry-After", a.retryAfter[0])
			a.retryAfter = a.retryAfter[1:]
		}
	}
	response.Body = io.NopCloser(strings.NewReader(body))
	return response, nil
}

// all returns what came so far.
func (a *arrivals) all() []arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sent)
}

const (
	testProject = iaasmock.DefaultProjectID
	testServer  = "30000000-0000-4000-8000-000000000001"
)

// apiCalls has one for every method, for lists and for NICs.
var apiCalls = map[string]func(context.Context, iaas.DefaultAPI) error{
	"LIST": func(ctx context.Context, api iaas.DefaultAPI) error {
		_, err := api.ListServers(ctx, testProject, "eu01").Execute()
		return err
	},
	"GET": func(ctx context.Context, api iaas.DefaultAPI) error {
		_, err := api.GetServer(ctx, testProject, "eu01", testServer).Execute()
		return err
	},
	"NICs": func(ctx context.Context, api iaas.DefaultAPI) error {
		_, err := api.ListServerNICs(ctx, testProject, "eu01", testServer).Execute()
		return err
	},
	"POST": func(ctx context.Context, api iaas.DefaultAPI) error {
		server := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, "m1", iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: iaas.PtrString(iaasmock.DefaultNetworkID)}})
		server.SetImageId(iaasmock.DefaultImageID)
		_, err := api.CreateServer(ctx, testProject, "eu01").CreateServerPayload(*server).Execute()
		return err
	},
	"PATCH": func(ctx context.Context, api iaas.DefaultAPI) error {
		_, err := api.UpdateNic(ctx, testProject, "eu01", testServer, testServer).UpdateNicPayload(iaas.UpdateNicPayload{}).
			Execute()
		return err
	},
	"DELETE": func(ctx context.Context, api iaas.DefaultAPI) error {
		return api.DeleteServer(ctx, testProject, "eu01", testServer).Execute()
	},
}

// Idle connections of the test servers' clients end by themselves, later.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
