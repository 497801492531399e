// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"crypto/rand"
	"crypto/rsa"
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
	ProjectID   string
	Credentials keyCredentials
}

type keyCredentials struct{ KID, Iss, Sub, Aud, PrivateKey, TokenEndpoint string }

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
	if token.Method == jwt.SigningMethodRS512 && token.Header["other"] != nil {
		if private, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
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
	status, answer := m.exchange(tokenPath, jwtBearer, assertion(m.t, m, key, nil))
	if status != 200 {
		m.t.Fatalf("token endpoint answered %d %v", status, answer)
	}
	m.token = answer["access_token"].(string)
	return keyJSON
}

func TestToken(t *testing.T) {
	m := newMock(t)
	_, key := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	for _, path := range []string{tokenPath, oldTokenPath} {
		status, answer := m.exchange(path, jwtBearer, assertion(t, m, key, nil))
		if status != 200 || answer["token_type"] != "Bearer" || answer["expires_in"] != 600.0 ||
			answer["refresh_token"] != "" {
			t.Errorf("%s answered %d %v", path, status, answer)
		}
		claims := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(answer["access_token"].(string), claims); err != nil {
			t.Fatal(err)
		}
		if claims["exp"] != float64(m.clock.Now().Add(10*time.Minute).Unix()) || claims["email"] != key.Credentials.Iss ||
			claims["sub"] != key.Credentials.Sub || claims["stackit/project/project.id"] != iaasmock.DefaultProjectID {
			t.Errorf("claims %v", claims)
		}
	}
}

func TestKeyForms(t *testing.T) {
	for form, want := range map[iaasmock.KeyForm]keyFile{
		"": {ProjectID: iaasmock.SecondProjectID, Credentials: keyCredentials{
			Aud: "https://accounts.stackit.cloud", TokenEndpoint: "https://accounts.stackit.cloud/oauth/v2/token"}},
		iaasmock.KeyForm2025: {
			Credentials: keyCredentials{Aud: "https://stackit-service-account-prod.apps.01.cf.eu01.stackit.cloud"}},
	} {
		var options []iaasmock.Option
		if form != "" {
			options = append(options, iaasmock.WithKeyForm(form))
		}
		m := newMock(t, options...)
		raw, key := newKey(t, m.cloud, iaasmock.SecondProjectID)
		got := keyFile{ProjectID: key.ProjectID,
			Credentials: keyCredentials{Aud: key.Credentials.Aud, TokenEndpoint: key.Credentials.TokenEndpoint}}
		if got != want || strings.Contains(string(raw), "tokenEndpoint") != (want.Credentials.TokenEndpoint != "") {
			t.Errorf("form %q: got %+v, want %+v", form, got, want)
		}
	}
}

func TestTokenRefusals(t *testing.T) {
	m := newMock(t)
	raw, key := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	refused := func(t *testing.T, assertion, message string) {
		t.Helper()
		// The newer endpoint tells no more than this, whatever is wrong.
		if status, answer := m.exchange(tokenPath, jwtBearer, assertion); status != 400 || len(answer) != 1 ||
			answer["error"] != "invalid_grant" {
			t.Errorf("%s answered %d %v", tokenPath, status, answer)
		}
		status, answer := m.exchange(oldTokenPath, jwtBearer, assertion)
		if text, _ := answer["msg"].(string); status != 401 || !strings.Contains(text, message) {
			t.Errorf("%s answered %d %v", oldTokenPath, status, answer)
		}
	}
	for name, row := range map[string]struct {
		change  func(*jwt.Token, jwt.MapClaims)
		message string
	}{
		"expired": {func(_ *jwt.Token, c jwt.MapClaims) { c["exp"] = m.clock.Now().Add(-time.Minute).Unix() },
			"expired"},
		"without exp":  {func(_ *jwt.Token, c jwt.MapClaims) { delete(c, "exp") }, "exp"},
		"other issuer": {func(_ *jwt.Token, c jwt.MapClaims) { c["iss"] = "me@sa.stackit.cloud" }, "iss"},
		"unknown kid":  {func(t *jwt.Token, _ jwt.MapClaims) { t.Header["kid"] = "x" }, "Key with kid x was not found"},
		"without kid":  {func(t *jwt.Token, _ jwt.MapClaims) { delete(t.Header, "kid") }, "was not found"},
		"wrong key":    {func(t *jwt.Token, _ jwt.MapClaims) { t.Header["other"] = true }, "signature"},
		"other algorithm": {func(t *jwt.Token, _ jwt.MapClaims) {
			t.Method, t.Header["alg"] = jwt.SigningMethodRS256, "RS256"
		}, "signing method"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, assertion(t, m, key, row.change), row.message) })
	}
	refused(t, "garbage", "malformed")
	right := assertion(t, m, key, nil)
	if status, answer := m.exchange(tokenPath, "refresh_token", right); status != 400 ||
		answer["error"] != "unsupported_grant_type" {
		t.Errorf("another grant: %d %v", status, answer)
	}
	for _, grant := range []string{"refresh_token", "client_credentials"} {
		if status, answer := m.exchange(oldTokenPath, grant, right); status != 400 ||
			!strings.Contains(answer["msg"].(string), "unsupported grant_type") {
			t.Errorf("%s at the older endpoint: %d %v", grant, status, answer)
		}
	}
	if err := m.cloud.RevokeServiceAccountKey(raw); err != nil {
		t.Fatal(err)
	}
	refused(t, right, "Key with kid "+key.Credentials.KID+" was not found")
	if err := m.cloud.RevokeServiceAccountKey(raw); err == nil {
		t.Error("a key could be revoked twice")
	}
	if _, err := m.cloud.NewServiceAccountKey("99999999-0000-4000-8000-000000000001"); err == nil {
		t.Error("there is a key for a project that does not exist")
	}
}

func TestCallsNeedAToken(t *testing.T) {
	m := newMock(t, iaasmock.WithTokenLifetime(time.Minute))
	unauthorized := func(when string) {
		t.Helper()
		for _, path := range []string{
			inRegion + "/servers", "/v2/keypairs", "/v2/regions/eu01/availability-zones",
			"/v2/projects/" + iaasmock.DefaultProjectID, "/resource-manager/v2/projects/" + iaasmock.DefaultProjectID,
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
	m.want(200, "GET", "/v2/keypairs", nil)
	m.clock.Step(time.Minute)
	unauthorized("with an expired token")

	key := m.login(iaasmock.DefaultProjectID)
	m.list("/servers")
	if err := m.cloud.RevokeServiceAccountKey(key); err != nil {
		t.Fatal(err)
	}
	unauthorized("with a revoked key")

	m.login(iaasmock.SecondProjectID)
	for _, project := range []string{iaasmock.DefaultProjectID, nothing} { // another one's, and none
		answer := m.want(403, "GET", "/v2/projects/"+project+"/regions/eu01/servers", nil)
		if diff := cmp.Diff(object{"code": 403.0, "msg": "Forbidden"}, answer); diff != "" {
			t.Errorf("with the key of another project (-want +got):\n%s", diff)
		}
	}

	other := newMock(t)
	other.login(iaasmock.DefaultProjectID)
	m.token = other.token
	unauthorized("with another cloud's token")
	if got := len(m.cloud.Servers()); got != 0 {
		t.Errorf("%d servers were made", got)
	}
}

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
		error  string // of a refusal
		says   string
	}{
		"right":             {code: 200},
		"several audiences": {claims: claims{"aud": []string{"another", workload.Audience}}, code: 200},
		"another grant": {form: map[string]string{"grant_type": "refresh_token"}, code: 400,
			error: "unsupported_grant_type"},
		"a key's grant": {form: map[string]string{"grant_type": jwtBearer}, code: 400, error: "invalid_grant"},
		"another type": {form: map[string]string{"client_assertion_type": "jwt"}, code: 400, error: "invalid_request",
			says: "assertion_type"},
		"another account": {form: map[string]string{"client_id": "me@sa.stackit.cloud"}, code: 401,
			error: "invalid_client", says: "client_id"},
		"no account": {form: map[string]string{"client_id": ""}, code: 401, error: "invalid_client",
			says: "client_id"},
		"no token": {form: map[string]string{"client_assertion": "garbage"}, code: 401, error: "invalid_client",
			says: "malformed"},
		"expired": {claims: claims{"exp": m.clock.Now().Add(-time.Second).Unix()}, code: 401,
			error: "invalid_client", says: "expired"},
		"without exp":         {claims: claims{"exp": nil}, code: 401, error: "invalid_client", says: "exp"},
		"another audience":    {claims: claims{"aud": "another"}, code: 401, error: "invalid_client", says: "aud"},
		"without an audience": {claims: claims{"aud": nil}, code: 401, error: "invalid_client", says: "aud"},
		"another issuer": {claims: claims{"iss": "https://another.example"}, code: 401, error: "invalid_client",
			says: "iss"},
		"another key": {issuer: newIssuer(t), code: 401, error: "invalid_client", says: "invalid"},
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
			status, answer := m.postForm(tokenPath, form)
			code, _ := answer["error"].(string)
			if message, _ := answer["error_description"].(string); status != row.code || code != row.error ||
				!strings.Contains(message, row.says) {
				t.Fatalf("answered %d %v, want %d, %q and %q", status, answer, row.code, row.error, row.says)
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
