// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

func newIssuer(t *testing.T) *workload.Issuer {
	t.Helper()
	issuer, err := workload.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

func TestWorkloadTokens(t *testing.T) {
	type claims = map[string]any
	m, issuer := newMock(t), newIssuer(t)
	email, err := issuer.NewServiceAccount(m.cloud, iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		claims claims
		form   map[string]string
		issuer *workload.Issuer
		code   int
		says   string // of a refusal
	}{
		"right":               {code: 200},
		"several audiences":   {claims: claims{"aud": []string{"another", workload.Audience}}, code: 200},
		"another grant":       {form: map[string]string{"grant_type": jwtBearer}, code: 400, says: "unsupported grant_type"},
		"another type":        {form: map[string]string{"client_assertion_type": "jwt"}, code: 400, says: "assertion_type"},
		"another account":     {form: map[string]string{"client_id": "me@sa.stackit.cloud"}, code: 401, says: "client_id"},
		"no account":          {form: map[string]string{"client_id": ""}, code: 401, says: "client_id"},
		"no token":            {form: map[string]string{"client_assertion": "garbage"}, code: 401, says: "malformed"},
		"expired":             {claims: claims{"exp": m.clock.Now().Add(-time.Second).Unix()}, code: 401, says: "expired"},
		"without exp":         {claims: claims{"exp": nil}, code: 401, says: "exp"},
		"another audience":    {claims: claims{"aud": "another"}, code: 401, says: "aud"},
		"without an audience": {claims: claims{"aud": nil}, code: 401, says: "aud"},
		"another issuer":      {claims: claims{"iss": "https://another.example"}, code: 401, says: "iss"},
		"another key":         {issuer: newIssuer(t), code: 401, says: "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if row.issuer == nil {
				row.issuer = issuer
			}
			token, err := row.issuer.Token(m.clock.Now().Add(time.Hour), row.claims)
			if err != nil {
				t.Fatal(err)
			}
			form := url.Values{
				"grant_type": {"client_credentials"}, "client_id": {email}, "client_assertion": {token},
				"client_assertion_type": {"urn:schwarz:params:oauth:client-assertion-type:workload-jwt"},
			}
			for field, value := range row.form {
				form.Set(field, value)
			}
			status, answer := m.postForm("/oauth/v2/token", form)
			if message, _ := answer["msg"].(string); status != row.code || !strings.Contains(message, row.says) {
				t.Fatalf("answered %d %v, want %d with %q", status, answer, row.code, row.says)
			}
			if row.code != 200 {
				return
			}
			m.token = answer["access_token"].(string)
			m.list("/servers")
			elsewhere := strings.Replace(inRegion, iaasmock.DefaultProjectID, iaasmock.SecondProjectID, 1)
			m.want(403, "GET", elsewhere+"/servers", nil)
		})
	}
}

func TestFederatedServiceAccountsNeedAnIssuerAudienceAndKeys(t *testing.T) {
	jwks, err := newIssuer(t).JWKS()
	if err != nil {
		t.Fatal(err)
	}
	cloud := iaasmock.New()
	const issuer, project = "https://issuer.example", iaasmock.DefaultProjectID
	keyOf := func(fields string) string { return `{"keys":[{"kid":"a",` + fields + `}]}` }
	for name, row := range map[string]struct{ project, issuer, audience, jwks string }{
		"no project":      {nothing, issuer, workload.Audience, string(jwks)},
		"no issuer":       {project, "", workload.Audience, string(jwks)},
		"no audience":     {project, issuer, "", string(jwks)},
		"no keys":         {project, issuer, workload.Audience, `{"keys":[]}`},
		"no JWKS":         {project, issuer, workload.Audience, "-----BEGIN"},
		"a broken key":    {project, issuer, workload.Audience, keyOf(`"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"`)},
		"a small key":     {project, issuer, workload.Audience, keyOf(`"kty":"RSA","n":"AQ","e":"AQAB"`)},
		"a symmetric key": {project, issuer, workload.Audience, keyOf(`"kty":"oct","k":"AQ"`)},
	} {
		t.Run(name, func(t *testing.T) {
			email, err := cloud.NewFederatedServiceAccount(row.project, iaasmock.FederatedIdentityProvider{
				Issuer: row.issuer, Assertions: map[string]string{"aud": row.audience}, JWKS: []byte(row.jwks),
			})
			if err == nil || email != "" {
				t.Errorf("got %q, %v", email, err)
			}
		})
	}
}
