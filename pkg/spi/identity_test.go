// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// The SDK's flow would take what is not set from the environment.
func TestAWorkloadIdentityIsExchanged(t *testing.T) {
	for _, name := range []string{"STACKIT_SERVICE_ACCOUNT_EMAIL", "STACKIT_FEDERATED_TOKEN_FILE",
		"STACKIT_IDP_TOKEN_ENDPOINT", "STACKIT_PRIVATE_KEY"} {
		t.Setenv(name, "not-to-be-used")
	}
	i := newIdentity(newRig(t))
	for name, claims := range map[string]map[string]any{
		"one audience": nil, "two audiences": {"aud": []string{workload.Audience, "https://kubernetes.example"}},
	} {
		if err := i.list(Credentials{Token: i.token(claims)}); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
	if tokens := i.cloud.CallCounts()["Token"]; tokens != 2 {
		t.Errorf("%d exchanges, want 2", tokens)
	}
	t.Setenv("STACKIT_SERVICE_ACCOUNT_EMAIL", i.email)
	i.email = ""
	if err := i.list(Credentials{Token: i.token(nil)}); !IsRefused(err) {
		t.Errorf("with the environment's service account: %v", err)
	}
}

// What is not sent cannot be used by whoever gets it.
func TestTokensThatAreNotSent(t *testing.T) {
	const apiServers = "Kubernetes API server"
	for name, row := range map[string]struct {
		claims map[string]any
		// token replaces the one that has the claims.
		token, says string
	}{
		"none":                {says: "not a JWT"},
		"no JWT":              {token: "s3cr3t", says: "not a JWT"},
		"too long":            {token: strings.Repeat("s3cr3t", maxIdentity), says: "16384 bytes"},
		"expired":             {claims: map[string]any{"exp": time.Now().Add(-time.Second).Unix()}, says: "expired at"},
		"without an end":      {claims: map[string]any{"exp": nil}, says: "no exp"},
		"without an audience": {claims: map[string]any{"aud": nil}, says: "no aud"},
		"an API server's": {
			claims: map[string]any{"aud": "https://kubernetes.default.svc.cluster.local"}, says: apiServers},
		"a short API server's": {claims: map[string]any{"aud": "kubernetes.default.svc"}, says: apiServers},
		"an API server's among others": {
			claims: map[string]any{"aud": []string{workload.Audience, "https://kubernetes.default.svc"}}, says: apiServers},
		"a shoot's as a URL": {claims: map[string]any{"aud": "https://Kubernetes:443/"}, says: apiServers},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIdentity(newRig(t))
			token := row.token
			if row.claims != nil {
				token = i.token(row.claims)
			}
			err := i.list(Credentials{Token: token})
			i.wantNotSent(err)
			if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v, want that it says %q", err, row.says)
			}
		})
	}
}

func TestAKeyAndAWorkloadIdentityAreRefused(t *testing.T) {
	i := newIdentity(newRig(t))
	i.wantNotSent(i.list(Credentials{ServiceAccountKey: string(i.key), Token: i.token(nil)}))
	if _, err := i.sessions.Session(Credentials{ProjectID: testProject}); !errors.Is(err, ErrNoCredentials) {
		t.Errorf("without either: %v", err)
	}
}

// A call that waits keeps its session, whose token may expire meanwhile. A Secret's new token is another session's.
func TestARenewedTokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdentity(newRig(t, iaasmock.WithTokenLifetime(10*time.Minute)))
		old := Credentials{ProjectID: testProject, ServiceAccountEmail: i.email, Token: i.token(nil)}
		session, err := i.sessions.Session(old)
		if err != nil {
			t.Fatal(err)
		}
		if err := list(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Hour)
		i.cloud.ResetCalls()
		i.wantNotSent(list(t.Context(), session))
		if err := i.list(Credentials{Token: i.token(nil)}); err != nil {
			t.Errorf("after the token was renewed: %v", err)
		}
	})
}

// identity is a workload's, which a service account of the rig's cloud trusts.
type identity struct {
	*rig
	issuer *workload.Issuer
	email  string
}

// newIdentity makes the cloud trust a new issuer. Sessions use the cloud's endpoint for
// workload identities.
func newIdentity(r *rig) *identity {
	r.t.Helper()
	issuer, err := workload.NewIssuer()
	if err != nil {
		r.t.Fatal(err)
	}
	email, err := issuer.NewServiceAccount(r.cloud, iaasmock.DefaultProjectID)
	if err != nil {
		r.t.Fatal(err)
	}
	return &identity{rig: r, issuer: issuer, email: email}
}

// token is one that the cloud takes, but for the claims that change replaces.
func (i *identity) token(change map[string]any) string {
	i.t.Helper()
	token, err := i.issuer.Token(time.Now().Add(time.Hour), change)
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// list makes an API call with the credentials.
func (i *identity) list(credentials Credentials) error {
	credentials.ProjectID, credentials.ServiceAccountEmail = iaasmock.DefaultProjectID, i.email
	session, err := i.sessions.Session(credentials)
	if err != nil {
		return err
	}
	return list(i.t.Context(), session)
}

// wantNotSent checks that a token was refused, and not sent.
func (i *identity) wantNotSent(err error) {
	i.t.Helper()
	if !IsRefused(err) {
		i.t.Errorf("got %v, want refused credentials", err)
	}
	if calls := i.cloud.CallCounts(); len(calls) > 0 {
		i.t.Errorf("there were calls: %v", calls)
	}
}
