// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func TestATokenEndpointOutOfOrderIsNotARefusal(t *testing.T) {
	const clock = "Sun, 06 Nov 1994 08:49:37 GMT"
	answer := func(body string) iaasmock.Fault { return iaasmock.Fault{Status: http.StatusOK, Body: body} }
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		refused bool
		says    string
	}{
		"not found":   {iaasmock.Fault{Status: http.StatusNotFound}, false, "status 404"},
		"unavailable": {iaasmock.Fault{Status: http.StatusServiceUnavailable}, false, "status 503"},
		"reset":       {iaasmock.Fault{DropBefore: true}, false, "connection reset"},
		"no token":    {answer(`{}`), false, "without a usable access token"},
		"no JSON":     {answer(`<html>`), false, ""},
		"malformed":   {answer(`{"access_token":"a\r\nHost: evil"}`), false, ""},
		"endless":     {answer(strings.Repeat(" ", maxTokenAnswer+1)), false, "larger than 65536 bytes"},
		"refuses":     {iaasmock.Fault{Status: http.StatusUnauthorized}, true, "status 401"},
		"assertion":   {iaasmock.Fault{Status: http.StatusBadRequest}, true, "status 400"},
		"no rights":   {iaasmock.Fault{Status: http.StatusForbidden}, true, "status 403"},
	} {
		for kind, credentials := range eachKind {
			bubble(t, name+", "+kind, func(t *testing.T) {
				i := newIdentity(newRig(t))
				session, err := i.sessions.Session(credentials(i))
				if err != nil {
					t.Fatal(err)
				}
				row.fault.Operation, row.fault.Header = "Token", http.Header{"Date": {clock}}
				remove := i.cloud.Inject(row.fault)
				var token *TokenError
				err = list(t.Context(), session)
				if !errors.As(err, &token) || token.Refused != row.refused || !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %v, want a TokenError that says %q, refused: %t", err, row.says, row.refused)
				}
				if row.refused && token.Date.Format(http.TimeFormat) != clock {
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

// Who needs a token while the next fetch is not due gets the failure of the last one.
func TestFailedTokenFetchesComeEverMoreRarely(t *testing.T) {
	for name, row := range map[string]struct {
		status, attempts int
	}{"down": {http.StatusServiceUnavailable, tokenAttempts}, "refused": {http.StatusUnauthorized, 1}} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.sessions.Jitter = func() float64 { return 0 }
			session := r.session()
			fail := func() { r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: row.status}) }
			wantFetches := func(pauses ...time.Duration) {
				t.Helper()
				for _, pause := range pauses {
					r.cloud.ResetCalls()
					if err := list(t.Context(), session); err == nil {
						t.Fatal("there is a token")
					}
					<-time.After(pause - time.Millisecond)
					var token *TokenError
					if err := list(t.Context(), session); !errors.As(err, &token) || token.Refused != (row.status == http.StatusUnauthorized) {
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

// A fetch that nobody waits for may end just when somebody comes.
func TestACallerThatComesLateGetsAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		exchange, err := keyExchange(r.sessions.Config, string(r.key), newSigner(clock.RealClock{}))
		if err != nil {
			t.Fatal(err)
		}
		tokens := newTokenSource(exchange, r.sessions.Transport, clock.RealClock{}, rand.Float64)
		tokens.fetches.DoChan("", func() (any, error) {
			<-time.After(time.Second)
			return "", errAbandoned
		})
		if token, err := tokens.get(t.Context()); token == "" || err != nil {
			t.Errorf("got %q, %v, want a token", token, err)
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

// Hundreds of calls may be under way with a token that was revoked, or expires.
func TestHowLongATokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		tokens := newTokenSource(func(http.RoundTripper, func() bool) (string, error) {
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
