// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
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

// Whoever writes a Secret knows its project, and may know another's service account. Nothing that he makes
// up finds the session of the other Secret.
func TestNoCredentialIsLeftOutOfASessionsKey(t *testing.T) {
	all := Credentials{ProjectID: "p", ServiceAccountKey: "k", ServiceAccountEmail: "e", Token: "t"}
	fields := reflect.TypeFor[Credentials]()
	for i := range fields.NumField() {
		without := all
		reflect.ValueOf(&without).Elem().Field(i).SetString("")
		if without.sessionKey() == all.sessionKey() {
			t.Errorf("without %s the same session is found", fields.Field(i).Name)
		}
	}
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
	for _, name := range []string{"STACKIT_SERVICE_ACCOUNT_KEY", "STACKIT_SERVICE_ACCOUNT_KEY_PATH", "STACKIT_PRIVATE_KEY",
		"STACKIT_PRIVATE_KEY_PATH", "STACKIT_SERVICE_ACCOUNT_TOKEN", "STACKIT_CREDENTIALS_PATH",
		"STACKIT_SERVICE_ACCOUNT_EMAIL", "STACKIT_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "not-to-be-used")
	}
	const elsewhere = "http://elsewhere.invalid"
	for _, name := range []string{"STACKIT_TOKEN_BASEURL", "STACKIT_IDP_TOKEN_ENDPOINT", "STACKIT_IAAS_CUSTOM_ENDPOINT"} {
		t.Setenv(name, elsewhere)
	}
	r := newRig(t)
	cloud := r.sessions.Transport
	r.sessions.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasPrefix(request.URL.String(), elsewhere) {
			t.Errorf("%s is sent where the environment says", request.Method)
		}
		return cloud.RoundTrip(request)
	})
	if err := list(t.Context(), r.session()); err != nil {
		t.Errorf("with the Secret's key alone: %v", err)
	}
	unusable := &PluginSPIImpl{Config: r.sessions.Config}
	if _, err := unusable.Session(Credentials{ProjectID: iaasmock.DefaultProjectID}); !IsRefused(err) {
		t.Errorf("without a key of its own: %v, want to be refused", err)
	}
}
