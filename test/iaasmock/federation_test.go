// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	workloadIssuer   = "https://issuer.example"
	workloadAudience = "sts.accounts.stackit.cloud"
)

// number is one of a JWK.
func number(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }

// issuerKeys are private keys by their algorithm, which is their ID, too.
func issuerKeys(t *testing.T) (keys map[string]crypto.Signer, jwks []byte) {
	t.Helper()
	rsaKey, rsaErr := rsa.GenerateKey(rand.Reader, 2048)
	ecKey, ecErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if rsaErr != nil || ecErr != nil {
		t.Fatal(rsaErr, ecErr)
	}
	point, err := ecKey.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(object{"keys": []object{
		{"kid": "RS256", "kty": "RSA", "use": "sig", "alg": "RS256", "n": number(rsaKey.N), "e": "AQAB"},
		{"kid": "ES256", "kty": "EC", "crv": "P-256",
			"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"RS256": rsaKey, "ES256": ecKey}, encoded
}

func TestWorkloadTokens(t *testing.T) {
	keys, jwks := issuerKeys(t)
	m := newMock(t)
	email, err := m.cloud.NewFederatedServiceAccount(iaasmock.DefaultProjectID, iaasmock.FederatedIdentityProvider{
		Issuer: workloadIssuer, JWKS: jwks, Assertions: map[string]string{"aud": workloadAudience, "sub": "a workload"},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := m.clock.Now()
	for name, row := range map[string]struct {
		claims jwt.MapClaims
		kid    string
		form   map[string]string
		// says is what the refusal says; "" if there is a token.
		says string
		code int
	}{
		"RSA":                  {code: 200},
		"elliptic curve":       {kid: "ES256", code: 200},
		"several audiences":    {claims: jwt.MapClaims{"aud": []string{"another", workloadAudience}}, code: 200},
		"another grant":        {form: map[string]string{"grant_type": jwtBearer}, code: 400, says: "unsupported grant_type"},
		"another type":         {form: map[string]string{"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}, code: 400, says: "client_assertion_type"},
		"another account":      {form: map[string]string{"client_id": "me@sa.stackit.cloud"}, code: 401, says: "client_id"},
		"no account":           {form: map[string]string{"client_id": ""}, code: 401, says: "client_id"},
		"no token":             {form: map[string]string{"client_assertion": "garbage"}, code: 401, says: "malformed"},
		"expired":              {claims: jwt.MapClaims{"exp": now.Add(-time.Second).Unix()}, code: 401, says: "expired"},
		"without exp":          {claims: jwt.MapClaims{"exp": nil}, code: 401, says: "exp"},
		"another audience":     {claims: jwt.MapClaims{"aud": "another"}, code: 401, says: "aud"},
		"without an audience":  {claims: jwt.MapClaims{"aud": nil}, code: 401, says: "aud"},
		"another subject":      {claims: jwt.MapClaims{"sub": "another workload"}, code: 401, says: "sub"},
		"another issuer":       {claims: jwt.MapClaims{"iss": "https://another.example"}, code: 401, says: "iss"},
		"another key":          {kid: "another", code: 401, says: "no key"},
		"another key's ID":     {kid: "swapped", code: 401, says: "invalid"},
		"signed by the public": {kid: "none", code: 401, says: "signing method"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := jwt.MapClaims{"iss": workloadIssuer, "aud": workloadAudience, "sub": "a workload", "exp": now.Add(time.Hour).Unix()}
			for claim, value := range row.claims {
				if claims[claim] = value; value == nil {
					delete(claims, claim)
				}
			}
			token, key := jwt.NewWithClaims(jwt.SigningMethodRS256, claims), any(keys["RS256"])
			token.Header["kid"] = "RS256"
			switch row.kid {
			case "ES256":
				token, key = jwt.NewWithClaims(jwt.SigningMethodES256, claims), keys["ES256"]
				token.Header["kid"] = row.kid
			case "swapped":
				token.Header["kid"] = "ES256"
			case "none":
				token, key = jwt.NewWithClaims(jwt.SigningMethodNone, claims), jwt.UnsafeAllowNoneSignatureType
				token.Header["kid"] = "RS256"
			case "another":
				token.Header["kid"] = row.kid
			}
			signed, err := token.SignedString(key)
			if err != nil {
				t.Fatal(err)
			}
			form := url.Values{"grant_type": {"client_credentials"}, "client_id": {email}, "client_assertion": {signed},
				"client_assertion_type": {"urn:schwarz:params:oauth:client-assertion-type:workload-jwt"}}
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
			m.want(403, "GET", strings.Replace(inRegion, iaasmock.DefaultProjectID, iaasmock.SecondProjectID, 1)+"/servers", nil)
		})
	}
}

func TestFederatedServiceAccountsNeedAnIssuerAudienceAndKeys(t *testing.T) {
	_, jwks := issuerKeys(t)
	cloud := iaasmock.New()
	keyOf := func(fields string) string { return `{"keys":[{"kid":"a",` + fields + `}]}` }
	for name, row := range map[string]struct{ project, issuer, audience, jwks string }{
		"no project":      {nothing, workloadIssuer, workloadAudience, string(jwks)},
		"no issuer":       {iaasmock.DefaultProjectID, "", workloadAudience, string(jwks)},
		"no audience":     {iaasmock.DefaultProjectID, workloadIssuer, "", string(jwks)},
		"no keys":         {iaasmock.DefaultProjectID, workloadIssuer, workloadAudience, `{"keys":[]}`},
		"no JWKS":         {iaasmock.DefaultProjectID, workloadIssuer, workloadAudience, "-----BEGIN"},
		"a broken key":    {jwks: keyOf(`"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"`)},
		"a small key":     {jwks: keyOf(`"kty":"RSA","n":"AQ","e":"AQAB"`)},
		"a symmetric key": {jwks: keyOf(`"kty":"oct","k":"AQ"`)},
	} {
		t.Run(name, func(t *testing.T) {
			if row.project == "" {
				row.project, row.issuer, row.audience = iaasmock.DefaultProjectID, workloadIssuer, workloadAudience
			}
			email, err := cloud.NewFederatedServiceAccount(row.project, iaasmock.FederatedIdentityProvider{
				Issuer: row.issuer, Assertions: map[string]string{"aud": row.audience}, JWKS: []byte(row.jwks),
			})
			if err == nil || email != "" {
				t.Errorf("got %q, %v", email, err)
			}
		})
	}
}
