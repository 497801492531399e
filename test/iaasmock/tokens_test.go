// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	gocmp "cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

type keyFile struct {
	Credentials struct{ KID, Iss, Sub, Aud, PrivateKey string }
}

func newKey(t *testing.T, cloud *iaasmock.Cloud, project string) ([]byte, keyFile) {
	t.Helper()
	raw, err := cloud.NewServiceAccountKey(project)
	if err != nil {
		t.Fatal(err)
	}
	var key keyFile
	if err := json.Unmarshal(raw, &key); err != nil {
		t.Fatal(err)
	}
	return raw, key
}

// assertion signs what a client sends; change may make it invalid.
func assertion(t *testing.T, m *mock, key keyFile, change func(*jwt.Token, jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{
		"iss": key.Credentials.Iss, "sub": key.Credentials.Sub, "aud": key.Credentials.Aud,
		"exp": m.clock.Now().Add(time.Hour).Unix(),
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS512, claims)
	token.Header["kid"] = key.Credentials.KID
	private, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(key.Credentials.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(token, claims)
	}
	signed, err := token.SignedString(private)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// The paths of the two token endpoints: accounts.stackit.cloud's, and the one of keys before 2026.
const tokenPath, oldTokenPath = "/oauth/v2/token", "/token"

func (m *mock) exchange(path, grant, assertion string) (int, object) {
	m.t.Helper()
	return m.postForm(path, url.Values{"grant_type": {grant}, "assertion": {assertion}})
}

// postForm returns what a token endpoint answers.
func (m *mock) postForm(path string, form url.Values) (int, object) {
	m.t.Helper()
	response, err := http.PostForm(m.url+path, form)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer object
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		m.t.Fatal(err)
	}
	return response.StatusCode, answer
}

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

func (m *mock) login(project string) (keyJSON []byte) {
	m.t.Helper()
	keyJSON, key := newKey(m.t, m.cloud, project)
	status, answer := m.exchange(oldTokenPath, jwtBearer, assertion(m.t, m, key, nil))
	if status != 200 || answer["token_type"] != "Bearer" || answer["refresh_token"] != "" {
		m.t.Fatalf("token endpoint answered %d %v", status, answer)
	}
	m.token = answer["access_token"].(string)
	return keyJSON
}

func TestTokenRefusals(t *testing.T) {
	m := newMock(t)
	raw, key := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	refused := func(name, assertion string) {
		t.Helper()
		// The endpoint tells no more than this, whatever is wrong.
		status, answer := m.exchange(tokenPath, jwtBearer, assertion)
		if diff := cmp.Diff(object{"error": "invalid_grant"}, answer); status != 400 || diff != "" {
			t.Errorf("%s: answered %d (-want +got):\n%s", name, status, diff)
		}
	}
	for name, change := range map[string]func(*jwt.Token, jwt.MapClaims){
		"expired":      func(_ *jwt.Token, c jwt.MapClaims) { c["exp"] = m.clock.Now().Add(-time.Minute).Unix() },
		"without exp":  func(_ *jwt.Token, c jwt.MapClaims) { delete(c, "exp") },
		"other issuer": func(_ *jwt.Token, c jwt.MapClaims) { c["iss"] = "me@sa.stackit.cloud" },
		"unknown kid":  func(t *jwt.Token, _ jwt.MapClaims) { t.Header["kid"] = "x" },
	} {
		refused(name, assertion(t, m, key, change))
	}
	_, other := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	refused("of another key", assertion(t, m, other, func(t *jwt.Token, _ jwt.MapClaims) {
		t.Header["kid"] = key.Credentials.KID
	}))
	right := assertion(t, m, key, nil)
	if status, answer := m.exchange(tokenPath, "refresh_token", right); status != 400 ||
		answer["error"] != "unsupported_grant_type" {
		t.Errorf("another grant: %d %v", status, answer)
	}
	m.cloud.Inject(iaasmock.Fault{Operation: "Token", TokenSkew: 2 * time.Hour, Count: 1})
	refused("for an hour, by a clock two hours ahead", right)
	if err := m.cloud.RevokeServiceAccountKey(raw); err != nil {
		t.Fatal(err)
	}
	refused("revoked", right)
	if _, err := m.cloud.NewServiceAccountKey(nothing); err == nil {
		t.Error("there is a key for a project that does not exist")
	}
}

func TestCallsNeedAToken(t *testing.T) {
	m := newMock(t, iaasmock.WithTokenLifetime(time.Minute))
	unauthorized := func(when string) {
		t.Helper()
		for _, path := range []string{
			inRegion + "/servers", "/v2/keypairs/" + iaasmock.DefaultKeypairName, "/v2/regions/eu01/availability-zones",
		} {
			if answer := m.want(401, "GET", path, nil); answer["msg"] != "Unauthorized" {
				t.Errorf("%s: %s answered %v", when, path, answer)
			}
		}
		m.want(401, "POST", inRegion+"/servers", serverBody(nil))
	}
	unauthorized("without a token")
	m.token = "garbage"
	unauthorized("with garbage")

	m.login(iaasmock.DefaultProjectID)
	m.list("/servers")
	m.clock.Step(time.Minute)
	unauthorized("with an expired token")

	key := m.login(iaasmock.DefaultProjectID)
	m.list("/servers")
	if err := m.cloud.RevokeServiceAccountKey(key); err != nil {
		t.Fatal(err)
	}
	unauthorized("with a revoked key")

	m.login(iaasmock.SecondProjectID)
	m.want(403, "GET", inRegion+"/servers", nil)

	other := newMock(t)
	other.login(iaasmock.DefaultProjectID)
	m.token = other.token
	unauthorized("with another cloud's token")
}

func TestWorkloadTokens(t *testing.T) {
	type claims = map[string]any
	m := newMock(t)
	issuer, err := workload.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	another, err := workload.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	email, err := issuer.NewServiceAccount(m.cloud, iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		claims claims
		form   map[string]string
		issuer *workload.Issuer
		says   string // of a refusal
	}{
		"right":             {},
		"several audiences": {claims: claims{"aud": []string{"another", workload.Audience}}},
		"another type":      {form: map[string]string{"client_assertion_type": "jwt"}, says: "assertion_type"},
		"another account":   {form: map[string]string{"client_id": "me@sa.stackit.cloud"}, says: "client_id"},
		"no token":          {form: map[string]string{"client_assertion": "garbage"}, says: "malformed"},
		"expired":           {claims: claims{"exp": m.clock.Now().Add(-time.Second).Unix()}, says: "expired"},
		"without exp":       {claims: claims{"exp": nil}, says: "exp"},
		"another audience":  {claims: claims{"aud": "another"}, says: "aud"},
		"another issuer":    {claims: claims{"iss": "https://another.example"}, says: "iss"},
		"another key":       {issuer: another, says: "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := gocmp.Or(row.issuer, issuer).Token(m.clock.Now().Add(time.Hour), row.claims)
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
			status, answer := m.postForm(tokenPath, form)
			if row.says != "" {
				said, _ := answer["error_description"].(string)
				if status != 401 || answer["error"] != "invalid_client" || !strings.Contains(said, row.says) {
					t.Errorf("answered %d %v, want %q", status, answer, row.says)
				}
				return
			}
			if status != 200 {
				t.Fatalf("answered %d %v", status, answer)
			}
			m.token = answer["access_token"].(string)
			m.list("/servers")
			elsewhere := strings.Replace(inRegion, iaasmock.DefaultProjectID, iaasmock.SecondProjectID, 1)
			m.want(403, "GET", elsewhere+"/servers", nil)
		})
	}
}
