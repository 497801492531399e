// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A session is kept while somebody asks for it, and an hour longer.
func TestSessionsAreKeptPerCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first, other := r.session(), r.sessionIn(iaasmock.SecondProjectID)
		if first == other {
			t.Error("other credentials get the same session")
		}
		<-time.After(50 * time.Minute)
		if r.session() != first {
			t.Error("equal credentials get another session")
		}
		<-time.After(61 * time.Minute)
		if r.sessionIn(iaasmock.SecondProjectID) == other || r.session() == first {
			t.Error("an idle session was kept")
		}
	})
}

// Whoever writes Secrets may write many: keys are read and sign one after the other, on one core.
func TestASessionIsBuiltOnceAndWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		known := r.sessionIn(iaasmock.SecondProjectID)
		r.sessions.signer.turn <- struct{}{} // somebody signs
		built := make(chan *Session, 3)
		for range cap(built) {
			go func() { built <- r.session() }()
		}
		synctest.Wait()
		if len(built) != 0 || r.sessionIn(iaasmock.SecondProjectID) != known {
			t.Errorf("%d sessions are built beside a signature, want only those that are known", len(built))
		}
		<-r.sessions.signer.turn
		first := <-built
		if second, third := <-built, <-built; second != first || third != first {
			t.Error("equal credentials get several sessions")
		}
	})
}

// A redirect would carry the access token, the assertion, or the workload identity's token, to another
// host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	const elsewhere = "elsewhere.invalid"
	for kind, credentials := range eachKind {
		for _, operation := range []string{"ListServers", "Token"} {
			bubble(t, operation+", "+kind, func(t *testing.T) {
				i := newIdentity(newRig(t))
				// 307 keeps method and body.
				i.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusTemporaryRedirect,
					Header: http.Header{"Location": {"http://" + elsewhere}}})
				cloud := i.sessions.Transport
				i.sessions.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
					if request.URL.Host == elsewhere {
						t.Error("a request is sent to another host")
					}
					return cloud.RoundTrip(request)
				})
				session, err := i.sessions.Session(credentials(i))
				if err != nil {
					t.Fatal(err)
				}
				var token *TokenError
				err = list(t.Context(), session)
				if err == nil || errors.As(err, &token) != (operation == "Token") || IsRefused(err) {
					t.Errorf("got %v, want a failure that is no refusal", err)
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
