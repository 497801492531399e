// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	"k8s.io/utils/clock"

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

// Pages of STACKIT's gateway are HTML, plain text and JSON with an "error" of its own.
func TestATokenEndpointOutOfOrderIsNotARefusal(t *testing.T) {
	const (
		clock = "Sun, 06 Nov 1994 08:49:37 GMT"
		page  = "<html><head><title>403 Forbidden</title></head><body>invalid_grant</body></html>"
		noKey = "Key with kid d61a8564-c8dd-4ffb-bc15-143e7d0c85ed was not found"
	)
	answer := func(status int, body string) iaasmock.Fault {
		return iaasmock.Fault{Status: status, Body: body, ContentType: "text/plain"}
	}
	gateway := func(status int, message string) iaasmock.Fault {
		return answer(status,
			fmt.Sprintf(`{"timestamp":"2026-08-25T08:13:00Z","path":"/oauth/v2/token","status":%d,"error":%q,"message":%q}`,
				status, http.StatusText(status), message))
	}
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		refused bool
		says    string
	}{
		"a deleted key": {refused, true, "refused the credentials with status 400"},
		"another client": {answer(401, `{"error":"invalid_client","error_description":"s3cr3t"}`), true,
			"refused the credentials"},
		"another account": {answer(403, `{"error":"unauthorized_client"}`), true,
			"refused the credentials with status 403"},
		"another form": {answer(400, ` {"error" : "invalid_request"} `), true,
			"refused the credentials with status 400"},
		"an unknown key": {answer(401, `{"code":401,"msg":"`+noKey+`"}`), true,
			"refused the credentials with status 401"},
		"a key that expired": {answer(401, `{"code":401,"msg":"Key with kid a-1 has expired"}`), true,
			"refused the credentials with status 401"},
		"a key that is switched off": {answer(403, `{"code":403,"msg":"key with kid a-1 is not active"}`), true,
			"refused the credentials with status 403"},
		"an unknown key, message": {gateway(400, noKey), true, "refused the credentials with status 400"},
		"an unknown key, OAuth": {answer(403, `{"error":"access_denied","error_description":"`+noKey+`"}`), true,
			"refused the credentials"},
		"an unknown key, error":     {answer(401, `{"error":"`+noKey+`"}`), true, "refused the credentials with status 401"},
		"another thing not found":   {gateway(403, "route was not found"), false, "failed with status 403"},
		"a key not of this place":   {gateway(401, "API key with kid x is unknown"), false, "failed with status 401"},
		"no access":                 {answer(400, `{"error":"access_denied"}`), false, "failed with status 400"},
		"a longer code":             {answer(400, `{"error":"invalid_grant_type"}`), false, "failed with status 400"},
		"a code in capitals":        {answer(400, `{"error":"INVALID_GRANT"}`), false, "failed with status 400"},
		"a proxy's code":            {answer(407, `{"error":"invalid_grant"}`), false, "failed with status 407"},
		"a code with 503":           {answer(503, `{"error":"invalid_grant"}`), false, "failed with status 503"},
		"not found":                 {answer(404, `{"error":"invalid_grant"}`), false, "failed with status 404"},
		"an unknown key, not found": {gateway(404, noKey), false, "failed with status 404"},
		"a limit": {gateway(429, "rate limit on IP level exceeded; please try again later"), false,
			"failed with status 429"},
		"a limit, OAuth":    {answer(429, `{"error":"invalid_client"}`), false, "failed with status 429"},
		"the gateway's 400": {gateway(400, "invalid_grant"), false, "failed with status 400"},
		"the gateway's 401": {gateway(401, "Unauthenticated token"), false, "failed with status 401"},
		"the gateway's 403": {gateway(403, "Unauthorized"), false, "failed with status 403"},
		"the API's 401":     {iaasmock.Fault{Status: http.StatusUnauthorized}, false, "failed with status 401"},
		"a page with 200":   {answer(200, page), false, "without a usable access token"},
		"a page with 400":   {answer(400, page), false, "failed with status 400"},
		"a page with 401":   {answer(401, page), false, "failed with status 401"},
		"a page with 403":   {answer(403, page), false, "failed with status 403"},
		"a page with 503":   {answer(503, page), false, "failed with status 503"},
		"text with 401": {answer(401, "Jwks doesn't have key to match kid or alg from Jwt"), false,
			"failed with status 401"},
		"a code in text":       {answer(400, "invalid_grant"), false, "failed with status 400"},
		"a code in a list":     {answer(400, `["invalid_grant"]`), false, "failed with status 400"},
		"a code in an object":  {answer(400, `{"error":{"code":"invalid_grant"}}`), false, "failed with status 400"},
		"a code before a page": {answer(400, `{"error":"invalid_grant"}`+page), false, "failed with status 400"},
		"another code":         {answer(400, `{"error":"temporarily_unavailable"}`), false, "failed with status 400"},
		"a code in a message":  {answer(400, `{"message":"invalid_grant"}`), false, "failed with status 400"},
		"a code with 500":      {answer(500, `{"error":"invalid_grant"}`), false, "failed with status 500"},
		"a code with 200":      {answer(200, `{"error":"invalid_grant"}`), false, "without a usable access token"},
		"a redirect": {iaasmock.Fault{Status: 302, Body: `{"error":"invalid_grant"}`,
			Header: http.Header{"Location": {"http://evil.example"}}},
			false, "failed with status 302"},
		"nothing with 200":     {answer(200, ""), false, "without a usable access token"},
		"nothing with 400":     {answer(400, ""), false, "failed with status 400"},
		"nothing with 401":     {answer(401, ""), false, "failed with status 401"},
		"unavailable":          {iaasmock.Fault{Status: http.StatusServiceUnavailable}, false, "failed with status 503"},
		"reset":                {iaasmock.Fault{DropBefore: true}, false, "connection reset"},
		"no token":             {answer(200, `{}`), false, "without a usable access token"},
		"a token of bytes":     {answer(200, `{"access_token":"a\r\nHost: evil"}`), false, "without a usable access token"},
		"a token with a blank": {answer(200, `{"access_token":"a b"}`), false, "without a usable access token"},
		"a token of numbers":   {answer(200, `{"access_token":1}`), false, "without a usable access token"},
		"endless":              {answer(200, strings.Repeat(" ", maxTokenAnswer+1)), false, "larger than 65536 bytes"},
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
				header := http.Header{"Date": {clock}}
				maps.Copy(header, row.fault.Header)
				row.fault.Operation, row.fault.Header = "Token", header
				remove := i.cloud.Inject(row.fault)
				var token *TokenError
				err = list(t.Context(), session)
				if !errors.As(err, &token) || token.Refused != row.refused || !strings.Contains(err.Error(), row.says) {
					t.Fatalf("got %v, want a TokenError that says %q, refused: %t", err, row.says, row.refused)
				}
				// Gardener takes some for a login that failed.
				for _, other := range []string{"invalid", "s3cr3t", "nauthorized", "Jwks", "html"} {
					if strings.Contains(token.Error(), other) {
						t.Errorf("%v repeats %q", token, other)
					}
				}
				if isAnswer := strings.Contains(err.Error(), "status"); isAnswer && token.Date.Format(http.TimeFormat) != clock {
					t.Errorf("the endpoint's clock shows %s, want %s", token.Date, clock)
				}
				remove()
				<-time.After(firstTokenPause)
				if err := list(t.Context(), session); err != nil {
					t.Errorf("after the endpoint is back: %v", err)
				}
			})
		}
	}
}

// net/http quotes what it cannot read, and an endpoint could repeat the assertion there, or a megabyte.
func TestWhatATokenEndpointSendsIsNotRepeated(t *testing.T) {
	for name, answer := range map[string]string{
		"a first line":  "%s\r\n\r\n",
		"a status":      "HTTP/1.1 %s OK\r\n\r\n",
		"a header line": "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
		"an encoding":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n",
		"a length":      "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
		"a long header": "HTTP/1.1 200 OK\r\nA: %s" + strings.Repeat("a", 1<<20) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assertion := r.FormValue("assertion")
				connection, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = fmt.Fprintf(connection, answer, assertion)
				_ = connection.Close()
			}))
			defer server.Close()
			r := newRig(t)
			r.sessions.Jitter = func() float64 { return 0 }
			r.sessions.Transport, r.sessions.Config.TokenURL = nil, server.URL+strings.Repeat("/path", 2000)
			var token *TokenError
			log := logAt4(t, func() {
				if err := list(t.Context(), r.session()); !errors.As(err, &token) || token.Refused {
					t.Fatalf("got %v, want a TokenError that is no refusal", err)
				}
			})
			for where, text := range map[string]string{"the error": token.Error(), "the log": log} {
				if text == "" || strings.Contains(text, "eyJ") || len(text) > 3000 {
					t.Errorf("%s has %d bytes: %.500s", where, len(text), text)
				}
			}
		})
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
	for name, row := range map[string]struct {
		fault     iaasmock.Fault
		attempts  int
		isRefused bool
	}{
		"down": {iaasmock.Fault{Operation: "Token", Status: http.StatusServiceUnavailable}, tokenAttempts, false},
		"not the API's": {iaasmock.Fault{Operation: "Token", Status: http.StatusForbidden, Body: "<html>"}, tokenAttempts,
			false},
		"refused": {refused, 1, true},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.sessions.Jitter = func() float64 { return 0 }
			session := r.session()
			fail := func() { r.cloud.Inject(row.fault) }
			wantFetches := func(pauses ...time.Duration) {
				t.Helper()
				for _, pause := range pauses {
					r.cloud.ResetCalls()
					if err := list(t.Context(), session); err == nil {
						t.Fatal("there is a token")
					}
					<-time.After(pause - time.Millisecond)
					var token *TokenError
					if err := list(t.Context(), session); !errors.As(err, &token) || token.Refused != row.isRefused {
						t.Errorf("meanwhile: %v, want the last failure", err)
					}
					if fetches := r.cloud.CallCounts()["Token"]; fetches != row.attempts {
						t.Errorf("%d fetches within %s, want %d", fetches, pause, row.attempts)
					}
					<-time.After(time.Millisecond)
				}
			}
			fail()
			wantFetches(time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 16*time.Second, 30*time.Second, 30*time.Second)
			r.cloud.ClearFaults()
			if err := list(t.Context(), session); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour) // the token has expired
			fail()
			wantFetches(time.Second, 2*time.Second)
		})
	}
}

// Tokens without expiry make the SDK's own flow panic at its second use; and by a
// clock that is ahead every token has expired.
func TestATokenOfUnclearLifetimeIsUsedForAWhileAndRenewed(t *testing.T) {
	for name, token := range map[string]string{
		"opaque":             `{"access_token":"opaque","token_type":"Bearer"}`,
		"opaque, short":      `{"access_token":"opaque","expires_in":1,"token_type":"Bearer"}`,
		"JWT, expired":       `{"access_token":"eyJhbGciOiJub25lIn0.eyJleHAiOjF9.","token_type":"Bearer"}`,
		"JWT without expiry": `{"access_token":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.","token_type":"Bearer"}`,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithoutAuthentication())
			r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: http.StatusOK, Body: token})
			for _, wait := range []time.Duration{0, 5 * time.Second, time.Hour, 5 * time.Second} {
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

// The repetition waits for its turn among the reads, which pause after a 401.
func TestA401IsToldIfThereIsNoTimeToRepeatTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		session := r.session()
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusUnauthorized})
		_ = list(t.Context(), session)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var answer *oapierror.GenericOpenAPIError
		if err := list(ctx, session); !errors.As(err, &answer) || answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("the end is %v, want 401", err)
		}
	})
}

// Hundreds of calls may be under way with a token that was revoked, or expires.
func TestHowLongATokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		tokens := newTokenSource(func(*tokenAttempt) (string, error) {
			fetched++
			return fmt.Sprintf("token-%d", fetched), nil
		}, nil, clock.RealClock{}, rand.Float64)
		for _, row := range []struct {
			after time.Duration
			want  string
		}{
			{0, "token-1"}, {0, "token-2"}, {0, "token-2"}, // the first was refused, and is refused again
			{unknownLifetime - expiryLeeway - 1, "token-2"}, {1, "token-3"},
		} {
			<-time.After(row.after)
			if token, err := tokens.get(t.Context()); token != row.want || err != nil {
				t.Errorf("got %q, %v, want %s", token, err, row.want)
			}
			if token, err := tokens.renew(); token != row.want || err != nil { // a fetch that begins as one ends
				t.Errorf("got %q, %v, want %s", token, err, row.want)
			}
			tokens.drop("token-1")
		}
	})
}
