// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// eachKind has both kinds of credentials.
var eachKind = map[string]func(*identity) Credentials{
	"key": func(i *identity) Credentials {
		return Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(i.key)}
	},
	"workload identity": func(i *identity) Credentials {
		return Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountEmail: i.email, Token: i.token(nil)}
	},
}

// refused is how the token endpoint answers a key that was deleted.
var refused = iaasmock.Fault{Operation: "Token", Status: http.StatusBadRequest, Body: `{"error":"invalid_grant"}`}

func TestIsRefusal(t *testing.T) {
	const (
		page    = "<html><head><title>403 Forbidden</title></head><body>invalid_grant</body></html>"
		noKey   = "Key with kid d61a8564-c8dd-4ffb-bc15-143e7d0c85ed was not found"
		grant   = `{"error":"invalid_grant"}`
		gateway = `{"status":403,"error":"Forbidden","message":"%s"}`
	)
	for name, row := range map[string]struct {
		status int
		body   string
		want   bool
	}{
		"a deleted key":           {400, grant, true},
		"another client":          {401, `{"error":"invalid_client","error_description":"x"}`, true},
		"another account":         {403, `{"error":"unauthorized_client"}`, true},
		"an unknown key":          {401, `{"code":401,"msg":"` + noKey + `"}`, true},
		"an unknown key, message": {400, fmt.Sprintf(gateway, noKey), true},
		"a key not of this place": {401, fmt.Sprintf(gateway, "API key with kid x is unknown"), false},
		"no access":               {400, `{"error":"access_denied"}`, false},
		"a code with 503":         {503, grant, false},
		"a limit":                 {429, `{"error":"invalid_client"}`, false},
		"a redirect":              {302, grant, false},
		"the gateway's 403":       {403, fmt.Sprintf(gateway, "Unauthorized"), false},
		"a page":                  {403, page, false},
		"text":                    {401, "Jwks doesn't have key to match kid or alg from Jwt", false},
		"a code in an object":     {400, `{"error":{"code":"invalid_grant"}}`, false},
		"a code before a page":    {400, grant + page, false},
		"a code in a message":     {400, `{"message":"invalid_grant"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isRefusal(row.status, []byte(row.body)); got != row.want {
				t.Errorf("a refusal: %t, want %t", got, row.want)
			}
		})
	}
}

// An endpoint that is down, or a gateway's page, is an outage. What it sends is not repeated: Gardener takes some of it
// for a login that failed.
func TestATokenEndpointOutOfOrderIsNotARefusal(t *testing.T) {
	const (
		page    = "<html><head><title>403 Forbidden</title></head><body>invalid_grant nauthorized</body></html>"
		noToken = "no usable access token"
	)
	answer := func(status int, body string) iaasmock.Fault {
		return iaasmock.Fault{Status: status, Body: body, ContentType: "text/plain"}
	}
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		refused bool
		says    string
	}{
		"a deleted key":   {refused, true, "refused the credentials with status 400"},
		"a page with 403": {answer(403, page), false, "failed with status 403"},
		"a page with 200": {answer(200, page), false, noToken},
		"reset":           {iaasmock.Fault{DropBefore: true}, false, "connection reset"},
		"no token":        {answer(200, `{}`), false, noToken},
		"endless":         {answer(200, strings.Repeat(" ", maxTokenAnswer+1)), false, "larger than 65536 bytes"},
		"an endless refusal": {answer(400, `{"error":"invalid_grant"}`+strings.Repeat(" ", maxTokenAnswer)), false,
			"larger than 65536 bytes"},
	} {
		for kind, credentials := range eachKind {
			bubble(t, name+", "+kind, func(t *testing.T) {
				i := newIdentity(newRig(t))
				session, err := i.sessions.Session(credentials(i))
				if err != nil {
					t.Fatal(err)
				}
				row.fault.Operation = "Token"
				remove := i.cloud.Inject(row.fault)
				var token *TokenError
				err = list(t.Context(), session)
				if !errors.As(err, &token) || token.Refused != row.refused || !strings.Contains(err.Error(), row.says) {
					t.Fatalf("got %v, want a TokenError that says %q, refused: %t", err, row.says, row.refused)
				}
				for _, other := range []string{"invalid", "evil", "nauthorized", "html"} {
					if strings.Contains(token.Error(), other) {
						t.Errorf("%v repeats %q", token, other)
					}
				}
				remove()
				<-time.After(firstPause)
				if err := list(t.Context(), session); err != nil {
					t.Errorf("after the endpoint is back: %v", err)
				}
			})
		}
	}
}

// Keys of either form work, at the endpoint that each names, or that the operator names for all.
func TestAssertionsAreSentToTheKeysOrTheOperatorsEndpoint(t *testing.T) {
	const operators = "https://token.invalid/token"
	for _, row := range []struct {
		form             iaasmock.KeyForm
		ofOperator, want string
	}{
		{iaasmock.KeyForm2026, "", "https://accounts.stackit.cloud/oauth/v2/token"},
		{iaasmock.KeyForm2025, "", "https://service-account.api.stackit.cloud/token"},
		{iaasmock.KeyForm2026, operators, operators},
	} {
		r := newRig(t, iaasmock.WithKeyForm(row.form))
		r.sessions.Config.TokenURL = row.ofOperator
		key, err := r.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		next := r.sessions.Transport
		r.sessions.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
			asked = append(asked, request.URL.String())
			return next.RoundTrip(request)
		})
		session, err := r.sessions.Session(Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(key)})
		if err != nil {
			t.Fatal(err)
		}
		if err := list(t.Context(), session); err != nil || len(asked) != 2 || asked[0] != row.want {
			t.Errorf("%+v: %v after %v", row, err, asked)
		}
	}
}

// Who needs a token while the next fetch is not due gets the failure of the last one.
func TestFailedTokenFetchesComeEverMoreRarely(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"down":    {Operation: "Token", Status: http.StatusServiceUnavailable},
		"a page":  {Operation: "Token", Status: http.StatusForbidden, Body: "<html>"},
		"refused": refused,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.sessions.Jitter = func() float64 { return 1 }
			session := r.session()
			wantFetches := func(pauses ...int) {
				t.Helper()
				for _, pause := range pauses {
					r.cloud.ResetCalls()
					if err := list(t.Context(), session); err == nil {
						t.Fatal("there is a token")
					}
					<-time.After(time.Duration(pause)*time.Second - time.Millisecond)
					var token *TokenError
					if err := list(t.Context(), session); !errors.As(err, &token) || token.Refused != (name == "refused") {
						t.Errorf("meanwhile: %v, want the last failure", err)
					}
					if fetches := r.cloud.CallCounts()["Token"]; fetches != 1 {
						t.Errorf("%d fetches within %d s, want 1", fetches, pause)
					}
					<-time.After(time.Millisecond)
				}
			}
			r.cloud.Inject(fault)
			wantFetches(1, 2, 4, 8, 16, 30, 30)
			r.cloud.ClearFaults()
			if err := list(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour) // the token has expired
			r.cloud.Inject(fault)
			wantFetches(1, 2)
		})
	}
}

// A token is used for 9 minutes, whatever it is; Tokens without expiry make the SDK's own flow panic at its second use.
func TestATokenIsUsedForAWhileAndRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithoutAuthentication())
		r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: http.StatusOK,
			Body: `{"access_token":"opaque","token_type":"Bearer"}`})
		for _, wait := range []time.Duration{0, 5 * time.Second, 8 * time.Minute, time.Minute, 5 * time.Second} {
			<-time.After(wait)
			if err := list(t.Context(), r.session()); err != nil {
				t.Fatal(err)
			}
		}
		if tokens := r.cloud.CallCounts()["Token"]; tokens != 2 {
			t.Errorf("%d tokens were fetched, want 2", tokens)
		}
	})
}

func TestA401IsAnsweredWithANewTokenOnce(t *testing.T) {
	r := newRig(t)
	session := r.session()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, Status: http.StatusUnauthorized,
		Body: "Jwks doesn't have key", ContentType: "text/plain"})
	if err := list(t.Context(), session); err != nil {
		t.Errorf("a single 401 fails the call: %v", err)
	}
	// Sent again with the token that was refused, it would only have been luck.
	if tokens := r.cloud.CallCounts()["Token"]; tokens != 2 {
		t.Errorf("%d tokens were fetched, want 2", tokens)
	}
	r.cloud.ResetCalls()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusUnauthorized})
	if err := list(t.Context(), session); err == nil {
		t.Error("401 for ever is no failure")
	}
	if calls := r.cloud.CallCounts()["ListServers"]; calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}

// Hundreds of calls may be under way with a token that is revoked: one fetch renews it for all.
func TestCallsShareTheRenewalOfAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		session := r.session()
		if err := list(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		const callers = 50
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: callers, Delay: time.Second,
			Status: http.StatusUnauthorized})
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				if err := list(t.Context(), session); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if tokens := r.cloud.CallCounts()["Token"]; tokens != 2 {
			t.Errorf("%d tokens were fetched, want 2", tokens)
		}
	})
}
