// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"golang.org/x/time/rate"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

type rig struct {
	t        *testing.T
	cloud    *iaasmock.Cloud
	url      string
	key      []byte
	sessions *spi.PluginSPIImpl
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
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: server.URL, TokenURL: server.URL + "/token"}}
	return &rig{t: t, cloud: cloud, url: server.URL, key: key, sessions: sessions}
}

func (r *rig) session() *spi.Session {
	r.t.Helper()
	session, err := r.sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(r.key)})
	if err != nil {
		r.t.Fatal(err)
	}
	return session
}

func list(ctx context.Context, session *spi.Session) error {
	_, err := session.API.ListServers(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).Execute()
	return err
}

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
	clock := clocktesting.NewFakeClock(time.Now())
	r := newRig(t)
	r.sessions.Clock = clock
	first := r.session()
	clock.Step(50 * time.Minute)
	if r.session() != first {
		t.Error("a session in use was dropped")
	}
	clock.Step(61 * time.Minute)
	if _, err := r.sessions.Session(spi.Credentials{ProjectID: iaasmock.SecondProjectID, ServiceAccountKey: string(r.key)}); err != nil {
		t.Fatal(err)
	}
	if r.session() == first {
		t.Error("an idle session was kept")
	}
}

func TestConcurrentFirstUseBuildsOneSession(t *testing.T) {
	r := newRig(t)
	sessions := make(chan *spi.Session)
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
	_, err := r.sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: "{}"})
	var unusable *spi.CredentialsError
	if !errors.As(err, &unusable) {
		t.Errorf("got %v, want a CredentialsError", err)
	}
}

func TestConcurrentCallsShareOneToken(t *testing.T) {
	r := newRig(t)
	session := r.session()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if err := list(t.Context(), session); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if tokens := r.cloud.CallCounts()["Token"]; tokens != 1 {
		t.Errorf("%d tokens were fetched, want 1", tokens)
	}
}

func TestA401IsAnsweredWithANewTokenOnce(t *testing.T) {
	r := newRig(t)
	session := r.session()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, Status: http.StatusUnauthorized, Body: "Jwks doesn't have key", ContentType: "text/plain"})
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

func TestARevokedKeyIsRefused(t *testing.T) {
	r := newRig(t)
	if err := r.cloud.RevokeServiceAccountKey(r.key); err != nil {
		t.Fatal(err)
	}
	if err := list(t.Context(), r.session()); !spi.IsRefused(err) {
		t.Errorf("got %v, want refused credentials", err)
	}
}

func TestATokenEndpointOutOfOrderIsNotARefusal(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"not found":   {Status: http.StatusNotFound},
		"unavailable": {Status: http.StatusServiceUnavailable},
		"reset":       {DropBefore: true},
		"no token":    {Status: http.StatusOK, Body: `{}`},
		"no JSON":     {Status: http.StatusOK, Body: `<html>`},
		"malformed":   {Status: http.StatusOK, Body: `{"access_token":"a\r\nHost: evil"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			fault.Operation = "Token"
			remove := r.cloud.Inject(fault)
			err := list(t.Context(), r.session())
			var token *spi.TokenError
			if !errors.As(err, &token) || token.Refused {
				t.Errorf("got %v, want a TokenError that is no refusal", err)
			}
			remove()
			if err := list(t.Context(), r.session()); err != nil {
				t.Errorf("after the endpoint is back: %v", err)
			}
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
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			r := newRig(t, iaasmock.WithoutAuthentication())
			r.sessions.Clock = clock
			r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: http.StatusOK, Body: token})
			for _, wait := range []time.Duration{0, 5 * time.Second, time.Hour, 5 * time.Second} {
				clock.Step(wait)
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

func TestRetryBridgesAnOutageOfSafeCalls(t *testing.T) {
	r := newRig(t)
	session := r.session()
	for name, fault := range map[string]iaasmock.Fault{
		"bad gateway":       {Count: 2, Status: http.StatusBadGateway, Body: "<html>", ContentType: "text/html"},
		"too many requests": {Count: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}},
		"reset":             {Count: 2, DropBefore: true},
		"answer lost":       {Count: 1, DropAfter: true},
	} {
		fault.Operation = "ListServers"
		r.cloud.Inject(fault)
		if err := list(t.Context(), session); err != nil {
			t.Errorf("%s: %v", name, err)
		}
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

func TestTheRateLimitHoldsForAllSessionsAndGivesUpInTime(t *testing.T) {
	r := newRig(t)
	r.sessions.Limiter = rate.NewLimiter(rate.Every(time.Hour), 1)
	session := r.session()
	if err := list(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := list(ctx, session); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want to hear at once that it would be too late", err)
	}
}

// A server must never be made twice: only what surely was not accepted is sent
// again.
func TestRequestsForServersAreRepeatedOnlyIfRefused(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		calls int
	}{
		"too many requests":   {iaasmock.Fault{Status: http.StatusTooManyRequests, Count: 1}, 2},
		"bad gateway":         {iaasmock.Fault{Status: http.StatusBadGateway, Count: 1}, 1},
		"service unavailable": {iaasmock.Fault{Status: http.StatusServiceUnavailable, Count: 1}, 1},
		"answer lost":         {iaasmock.Fault{DropAfter: true, Count: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.fault.Operation = "CreateServer"
			r.cloud.Inject(row.fault)
			network := iaasmock.DefaultNetworkID
			_, _ = r.session().API.CreateServer(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
				CreateServerPayload(iaas.CreateServerPayload{Name: "m1", MachineType: iaasmock.DefaultMachineType,
					Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}}}).Execute()
			if calls := r.cloud.CallCounts()["CreateServer"]; calls != row.calls {
				t.Errorf("%d calls, want %d", calls, row.calls)
			}
		})
	}
}

func TestRetryAfterHoldsBackTheWholeSession(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := newRig(t)
	r.sessions.Clock = clock
	session := r.session()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"20"}}})
	done := make(chan error, 2)
	call := func() { done <- list(t.Context(), session) }
	waitForWaiters := func(count int) {
		for clock.Waiters() < count {
			time.Sleep(time.Millisecond) //nolint:forbidigo // the fake clock tells nobody
		}
	}
	go call()
	waitForWaiters(1) // the first call's own backoff
	clock.Step(6 * time.Second)
	waitForWaiters(1) // and the rest of what Retry-After asks for
	go call()
	waitForWaiters(2)
	if calls := r.cloud.CallCounts()["ListServers"]; calls != 1 {
		t.Errorf("%d calls before the time, want 1", calls)
	}
	clock.Step(20 * time.Second)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
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
	unusable := &spi.PluginSPIImpl{Config: r.sessions.Config}
	if _, err := unusable.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID}); !spi.IsRefused(err) {
		t.Errorf("without a key of its own: %v, want to be refused", err)
	}
}
