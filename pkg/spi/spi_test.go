// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestSessionsAreKeptPerCredentials(t *testing.T) {
	r := newRig(t)
	first := r.session()
	if r.session() != first {
		t.Error("equal credentials get another session")
	}
	rotated, err := r.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	r.key = rotated
	if r.session() == first {
		t.Error("a rotated key gets the old session")
	}
}

func TestIdleSessionsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newVirtualRig(t)
		first := r.session()
		<-time.After(50 * time.Minute)
		if r.session() != first {
			t.Error("a session in use was dropped")
		}
		<-time.After(61 * time.Minute)
		if _, err := r.sessions.Session(Credentials{ProjectID: iaasmock.SecondProjectID, ServiceAccountKey: string(r.key)}); err != nil {
			t.Fatal(err)
		}
		if r.session() == first {
			t.Error("an idle session was kept")
		}
	})
}

// gatedClock holds the first that asks for the time until the gate is open.
type gatedClock struct {
	clock.RealClock
	asked atomic.Bool
	gate  chan struct{}
}

func (g *gatedClock) Now() time.Time {
	if g.asked.CompareAndSwap(false, true) {
		<-g.gate
	}
	return g.RealClock.Now()
}

// A build may take a while: it reads keys and files.
func TestTwoSecretsDoNotShareABuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, gated := newIdentity(newVirtualRig(t)), &gatedClock{gate: make(chan struct{})}
		i.sessions.Clock = gated
		credentials := Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountEmail: i.email, Token: i.token(nil)}
		build := func(credentials Credentials) chan *Session {
			built := make(chan *Session, 1)
			go func() {
				session, err := i.sessions.Session(credentials)
				if err != nil {
					t.Error(err)
				}
				built <- session
			}()
			synctest.Wait()
			return built
		}
		slow := build(credentials) // asks whether its token has expired
		other := build(Credentials{ProjectID: iaasmock.SecondProjectID, ServiceAccountKey: string(i.key)})
		same := build(credentials)
		if len(slow) != 0 || len(other) != 1 || len(same) != 0 {
			t.Errorf("while a session is built, %d of its own, %d of another Secret and %d of the same were built, want 0, 1 and 0",
				len(slow), len(other), len(same))
		}
		close(gated.gate)
		first := <-slow
		if <-same != first {
			t.Error("equal credentials get two sessions")
		}
		if session := <-other; session.ProjectID != iaasmock.SecondProjectID {
			t.Errorf("a Secret got the session of project %s", session.ProjectID)
		}
	})
}

func TestACallEndsWithItsContext(t *testing.T) {
	r := newRig(t)
	session := r.session()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- list(ctx, session) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// A redirect would carry the access token, the assertion, or the workload identity's token, to another
// host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for kind, credentials := range eachKind {
		for _, operation := range []string{"ListServers", "Token"} {
			t.Run(operation+", "+kind, func(t *testing.T) {
				var followed atomic.Int64
				elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					followed.Add(1)
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"access_token":"opaque","token_type":"Bearer","items":[]}`))
				}))
				defer elsewhere.Close()
				i := newIdentity(newRig(t))
				// 307 keeps method and body.
				i.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusTemporaryRedirect,
					Header: http.Header{"Location": {elsewhere.URL}}})
				session, err := i.sessions.Session(credentials(i))
				if err != nil {
					t.Fatal(err)
				}
				var token *TokenError
				err = list(t.Context(), session)
				if err == nil || errors.As(err, &token) != (operation == "Token") || IsRefused(err) {
					t.Errorf("got %v, want a failure that is no refusal", err)
				}
				if followed.Load() != 0 {
					t.Errorf("%d requests were sent to another host", followed.Load())
				}
			})
		}
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

// The SDK itself would prefer what it finds in the environment to parts of the key.
func TestNoAmbientCredentialIsUsed(t *testing.T) {
	for _, name := range []string{"STACKIT_SERVICE_ACCOUNT_KEY", "STACKIT_SERVICE_ACCOUNT_KEY_PATH", "STACKIT_PRIVATE_KEY", "STACKIT_PRIVATE_KEY_PATH",
		"STACKIT_SERVICE_ACCOUNT_TOKEN", "STACKIT_CREDENTIALS_PATH", "STACKIT_SERVICE_ACCOUNT_EMAIL", "STACKIT_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "not-to-be-used")
	}
	t.Setenv("STACKIT_TOKEN_BASEURL", "http://127.0.0.1:1/not-to-be-used")
	r := newRig(t)
	if err := list(t.Context(), r.session()); err != nil {
		t.Errorf("with the Secret's key alone: %v", err)
	}
	unusable := &PluginSPIImpl{Config: r.sessions.Config}
	if _, err := unusable.Session(Credentials{ProjectID: iaasmock.DefaultProjectID}); !IsRefused(err) {
		t.Errorf("without a key of its own: %v, want to be refused", err)
	}
}
