// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// The SDK's flow would take what is not set from the environment.
func TestAWorkloadIdentityIsExchanged(t *testing.T) {
	for _, name := range []string{"STACKIT_SERVICE_ACCOUNT_EMAIL", "STACKIT_FEDERATED_TOKEN_FILE", "STACKIT_IDP_TOKEN_ENDPOINT", "STACKIT_PRIVATE_KEY"} {
		t.Setenv(name, "not-to-be-used")
	}
	i := newIdentity(newRig(t))
	if err := i.list(Credentials{Token: i.token(nil)}); err != nil {
		t.Errorf("with a token: %v", err)
	}
	dir := t.TempDir()
	i.sessions.Config.IdentityDirs = dir
	writeFile(t, dir+"/token", i.token(nil)+"\n")
	if err := i.list(Credentials{TokenFile: dir + "/token"}); err != nil {
		t.Errorf("with a file: %v", err)
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
	const podAudience = "https://api.cluster.example"
	for name, row := range map[string]struct {
		claims map[string]any
		// token replaces the one that has the claims.
		token, says string
	}{
		"expired":                      {claims: map[string]any{"exp": time.Now().Add(-time.Second).Unix()}, says: "expired at"},
		"without an end":               {claims: map[string]any{"exp": nil}, says: "no exp"},
		"without an audience":          {claims: map[string]any{"aud": nil}, says: "no aud"},
		"with an empty audience":       {claims: map[string]any{"aud": []string{""}}, says: "no aud"},
		"an API server's":              {claims: map[string]any{"aud": "https://kubernetes.default.svc.cluster.local"}, says: "Kubernetes API server"},
		"a short API server's":         {claims: map[string]any{"aud": "kubernetes.default.svc"}, says: "Kubernetes API server"},
		"an API server's with a port":  {claims: map[string]any{"aud": "https://Kubernetes.Default.svc:443/"}, says: "Kubernetes API server"},
		"an API server's among others": {claims: map[string]any{"aud": []string{workload.Audience, "https://kubernetes.default.svc"}}, says: "Kubernetes API server"},
		"the pod's own API server's":   {claims: map[string]any{"aud": podAudience}, says: "Kubernetes API server"},
		"another pod's":                {claims: map[string]any{"aud": []string{podAudience}, "sub": "another"}, says: "Kubernetes API server"},
		"no JWT":                       {token: "s3cr3t", says: "no JWT"},
		"too long":                     {token: strings.Repeat("s3cr3t", maxIdentity), says: "16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIdentity(newRig(t))
			token := row.token
			if token == "" {
				token = i.token(row.claims)
			}
			dir := t.TempDir()
			i.sessions.Config.IdentityDirs, i.sessions.Config.PodTokenFile = dir, filepath.Join(t.TempDir(), "token")
			writeFile(t, i.sessions.Config.PodTokenFile, i.token(map[string]any{"aud": podAudience}))
			writeFile(t, dir+"/token", token)
			for from, credentials := range map[string]Credentials{"a Secret": {Token: token}, "a file": {TokenFile: dir + "/token"}} {
				err := i.list(credentials)
				i.wantNotSent(err)
				if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("of %s: %v, want that it says %q", from, err, row.says)
				}
			}
		})
	}
}

func TestNoFileIsReadBesideAToken(t *testing.T) {
	i := newIdentity(newRig(t))
	if err := i.list(Credentials{Token: i.token(nil), TokenFile: "/a/file/that/is/not/there"}); err != nil {
		t.Error(err)
	}
}

func TestAKeyAndAWorkloadIdentityAreRefused(t *testing.T) {
	i := newIdentity(newRig(t))
	i.wantNotSent(i.list(Credentials{ServiceAccountKey: string(i.key), Token: i.token(nil)}))
	if _, err := i.sessions.Session(Credentials{ProjectID: testProject}); !errors.Is(err, ErrNoCredentials) {
		t.Errorf("without either: %v", err)
	}
}

// A call that waits keeps its session: the file is read again, and a Secret's new token is
// another session's.
func TestARenewedTokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdentity(newVirtualRig(t, iaasmock.WithTokenLifetime(10*time.Minute)))
		dir := t.TempDir()
		i.sessions.Config.IdentityDirs = dir
		file := Credentials{TokenFile: dir + "/token"}
		inSecret := Credentials{Token: i.token(nil)}
		writeFile(t, file.TokenFile, inSecret.Token)
		for _, credentials := range []Credentials{file, inSecret} {
			if err := i.list(credentials); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * time.Hour)
		i.cloud.ResetCalls()
		for _, credentials := range []Credentials{file, inSecret} {
			i.wantNotSent(i.list(credentials))
		}
		<-time.After(maxTokenPause)
		writeFile(t, file.TokenFile, i.token(nil))
		for _, credentials := range []Credentials{file, {Token: i.token(nil)}} {
			if err := i.list(credentials); err != nil {
				t.Errorf("after the token was renewed: %v", err)
			}
		}
	})
}

// A token that nobody signed must not be good for the session that another Secret's made.
func TestAMadeUpTokenFindsNoSession(t *testing.T) {
	i := newIdentity(newRig(t))
	good := i.token(nil)
	if err := i.list(Credentials{Token: good}); err != nil {
		t.Fatal(err)
	}
	madeUp := i.token(map[string]any{"jti": "made-up"})
	forged := madeUp[:strings.LastIndex(madeUp, ".")] + good[strings.LastIndex(good, "."):]
	if err := i.list(Credentials{Token: forged}); !IsRefused(err) {
		t.Errorf("a token that nobody signed: %v, want refused", err)
	}
	whole := Credentials{ProjectID: "p", ServiceAccountEmail: "e", Token: "t"}
	for name, other := range map[string]Credentials{
		"another project":        {ProjectID: "q", ServiceAccountEmail: "e", Token: "t"},
		"another account":        {ProjectID: "p", ServiceAccountEmail: "f", Token: "t"},
		"no account":             {ProjectID: "p", Token: "t"},
		"the token as a file":    {ProjectID: "p", ServiceAccountEmail: "e", TokenFile: "t"},
		"the token as a key":     {ProjectID: "p", ServiceAccountEmail: "e", ServiceAccountKey: "t"},
		"borders elsewhere":      {ProjectID: "p", ServiceAccountEmail: "et"},
		"borders that are faked": {ProjectID: "p", ServiceAccountEmail: "e1:t"},
	} {
		if other.sessionKey() == whole.sessionKey() {
			t.Errorf("%s finds the session", name)
		}
	}
}

func TestTheEndpointForWorkloadIdentitiesMayBeOutOfOrder(t *testing.T) {
	for name, row := range map[string]struct {
		fault   iaasmock.Fault
		refused bool
		says    string
	}{
		"down":     {iaasmock.Fault{Status: http.StatusServiceUnavailable}, false, "status 503"},
		"missing":  {iaasmock.Fault{Status: http.StatusNotFound}, false, "status 404"},
		"no token": {iaasmock.Fault{Status: http.StatusOK, Body: `{}`}, false, "without a usable access token"},
		"endless":  {iaasmock.Fault{Status: http.StatusOK, Body: `{"access_token":"` + strings.Repeat("a", maxTokenAnswer) + `"}`}, false, "larger than 65536 bytes"},
		"refuses":  {iaasmock.Fault{Status: http.StatusUnauthorized}, true, "status 401"},
		"redirect": {iaasmock.Fault{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, false, "status 307"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIdentity(newVirtualRig(t))
				row.fault.Operation = "Token"
				i.cloud.Inject(row.fault)
				var token *TokenError
				if err := i.list(Credentials{Token: i.token(nil)}); !errors.As(err, &token) || token.Refused != row.refused || !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %v, want a TokenError that says %q", err, row.says)
				}
			})
		})
	}
}
