// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

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

func TestConcurrentFirstUseBuildsOneSession(t *testing.T) {
	r := newRig(t)
	sessions := make(chan *Session)
	for range 20 {
		go func() { sessions <- r.session() }()
	}
	first := <-sessions
	for range 19 {
		if <-sessions != first {
			t.Error("several sessions were built")
		}
	}
}

func TestSessionWithAnUnusableKeyIsACredentialsError(t *testing.T) {
	r := newRig(t)
	_, err := r.sessions.Session(Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: "{}"})
	var unusable *CredentialsError
	if !errors.As(err, &unusable) {
		t.Errorf("got %v, want a CredentialsError", err)
	}
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

func TestRedirectsAreNotFollowed(t *testing.T) {
	var authorization string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		authorization = request.Header.Get("Authorization")
	}))
	defer elsewhere.Close()
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {elsewhere.URL}}})
	if err := list(t.Context(), r.session()); err == nil {
		t.Error("a redirect is no failure")
	}
	if authorization != "" {
		t.Error("the access token was sent to another host")
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
