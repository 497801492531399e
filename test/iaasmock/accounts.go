// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// KeyForm is the format of a service-account key file; see WithKeyForm.
type KeyForm string

// The forms of key files.
const (
	// KeyForm2026 is STACKIT's format since 2026. The file contains the token endpoint
	// https://accounts.stackit.cloud/oauth/v2/token and the service account's project.
	KeyForm2026 KeyForm = "2026"
	// KeyForm2025 is the format before 2026. The file contains neither token endpoint nor project.
	KeyForm2025 KeyForm = "2025"
)

// accounts holds the service accounts. It is safe for concurrent use.
type accounts struct {
	mu sync.RWMutex
	// keys are the accounts by the IDs of their keys, federated those without a key by email address.
	keys, federated map[string]account
	// secret signs access tokens, which other Clouds refuse.
	secret []byte
}

// account is a service account. It has a key, or trusts a provider's tokens.
type account struct {
	email, subject, projectID string
	key                       *rsa.PublicKey
	provider                  FederatedIdentityProvider
	providerKeys              map[string]*rsa.PublicKey
}

func newAccounts() *accounts {
	return &accounts{keys: map[string]account{}, federated: map[string]account{}, secret: []byte(rand.Text())}
}

// NewServiceAccountKey creates a service account with access to the project and returns its key
// file as JSON, including the private key. WithKeyForm sets the format. Clients must use this
// Cloud's /oauth/v2/token instead of the token endpoint in the file; /token is the same.
func (c *Cloud) NewServiceAccountKey(projectID string) ([]byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	public, publicErr := x509.MarshalPKIXPublicKey(&private.PublicKey)
	secret, secretErr := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(publicErr, secretErr); err != nil {
		return nil, err
	}
	id := uuid.NewString()
	credentials := object{
		"kid": id, "iss": newEmail(), "sub": uuid.NewString(),
		"aud":        "https://stackit-service-account-prod.apps.01.cf.eu01.stackit.cloud",
		"privateKey": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}
	file := object{
		"id": id, "publicKey": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"createdAt": c.clock.Now().UTC(), "keyType": "USER_MANAGED", "keyOrigin": "GENERATED",
		"keyAlgorithm": "RSA_2048", "active": true, "credentials": credentials,
	}
	if c.keyForm == KeyForm2026 {
		file["projectId"], credentials["aud"] = projectID, "https://accounts.stackit.cloud"
		credentials["tokenEndpoint"] = "https://accounts.stackit.cloud/oauth/v2/token"
	}
	encoded, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, err
	}
	return encoded, c.RegisterServiceAccountKey(projectID, encoded)
}

// keyFile has the fields of a key file that the mock reads.
type keyFile struct {
	PublicKey   string
	Credentials struct{ KID, Iss, Sub string }
}

func newEmail() string { return "mock-" + uuid.NewString()[:8] + "@sa.stackit.cloud" }

// RegisterServiceAccountKey grants a key from another Cloud's NewServiceAccountKey access to a
// project of this Cloud. Generating a key is slow: a test with many Clouds can generate one key and
// register it in each.
func (c *Cloud) RegisterServiceAccountKey(projectID string, keyJSON []byte) error {
	if err := c.checkProject(projectID); err != nil {
		return err
	}
	var file keyFile
	if err := json.Unmarshal(keyJSON, &file); err != nil {
		return fmt.Errorf("decode the key: %w", err)
	}
	public, err := jwt.ParseRSAPublicKeyFromPEM([]byte(file.PublicKey))
	if err != nil {
		return fmt.Errorf("parse the public key: %w", err)
	}
	c.accounts.mu.Lock()
	defer c.accounts.mu.Unlock()
	c.accounts.keys[file.Credentials.KID] = account{
		email: file.Credentials.Iss, subject: file.Credentials.Sub, projectID: projectID, key: public,
	}
	return nil
}

// RevokeServiceAccountKey invalidates a key from NewServiceAccountKey and every access token issued
// for it. It returns an error if keyJSON is no key.
func (c *Cloud) RevokeServiceAccountKey(keyJSON []byte) error {
	var file keyFile
	if err := json.Unmarshal(keyJSON, &file); err != nil {
		return fmt.Errorf("decode the key: %w", err)
	}
	c.accounts.mu.Lock()
	defer c.accounts.mu.Unlock()
	delete(c.accounts.keys, file.Credentials.KID)
	return nil
}

// FederatedIdentityProvider is an issuer of tokens that a service account trusts.
type FederatedIdentityProvider struct {
	// Issuer is the required iss of a token.
	Issuer string
	// Assertions are the claims that a token must have, with their values. STACKIT requires an
	// assertion about aud; if a claim is a list, one item must have the value.
	Assertions map[string]string
	// JWKS holds the issuer's public keys (RFC 7517), of type RSA. STACKIT fetches them from the issuer.
	JWKS []byte
}

// NewFederatedServiceAccount creates a service account with access to the project and returns its
// email address. The account has no key, but trusts the provider's tokens: this Cloud's
// /oauth/v2/token exchanges them for access tokens. It is an error if the project does not exist, or
// if the provider has no issuer, no assertion about aud, or an invalid JWKS.
func (c *Cloud) NewFederatedServiceAccount(
	projectID string, provider FederatedIdentityProvider,
) (email string, err error) {
	if err := c.checkProject(projectID); err != nil {
		return "", err
	}
	if provider.Issuer == "" || provider.Assertions["aud"] == "" { // an empty value would not be checked
		return "", errors.New("a federated identity provider must have an issuer and an assertion about aud")
	}
	keys, err := publicKeys(provider.JWKS)
	if err != nil {
		return "", fmt.Errorf("decode the JWKS: %w", err)
	}
	email = newEmail()
	c.accounts.mu.Lock()
	defer c.accounts.mu.Unlock()
	c.accounts.federated[email] = account{
		email: email, subject: uuid.NewString(), projectID: projectID, provider: provider, providerKeys: keys,
	}
	return email, nil
}

// publicKeys returns the keys of a JWKS by their IDs.
func publicKeys(jwks []byte) (map[string]*rsa.PublicKey, error) {
	var set struct {
		Keys []struct{ Kid, Kty, N, E string }
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, err
	}
	keys := map[string]*rsa.PublicKey{}
	for _, key := range set.Keys {
		modulus, modulusErr := base64.RawURLEncoding.DecodeString(key.N)
		exponent, exponentErr := base64.RawURLEncoding.DecodeString(key.E)
		if key.Kty != "RSA" || errors.Join(modulusErr, exponentErr) != nil {
			return nil, fmt.Errorf("key %q must be an RSA key", key.Kid)
		}
		e := new(big.Int).SetBytes(exponent)
		keys[key.Kid] = &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: int(e.Int64())}
	}
	return keys, nil
}

func (c *Cloud) checkProject(id string) error {
	if !slices.Contains(c.catalogue.Projects, id) {
		return fmt.Errorf("project %s does not exist", id)
	}
	return nil
}

// accessClaims are the claims of a STACKIT access token that clients read.
type accessClaims struct {
	jwt.RegisteredClaims

	Email     string `json:"email"`
	ProjectID string `json:"stackit/project/project.id"`
	// KeyID is the ID of the service-account key; "" for a workload identity.
	KeyID string `json:"kid,omitempty"`
	// ValidUntil is when the mock stops accepting the token, in Unix seconds.
	ValidUntil int64 `json:"validUntil"`
}

// issueToken handles POST /oauth/v2/token, the endpoint of accounts.stackit.cloud, and POST /token,
// that of keys before 2026. A refusal has the form of RFC 6749, 5.2. There is no refresh token: with
// one, clients would switch to another grant.
func (c *Cloud) issueToken(r *request) (any, *apiError) {
	form, _ := url.ParseQuery(string(r.body)) // a broken form lacks the grant type
	now := c.clock.Now()
	skewed := now.Add(r.fault.TokenSkew)
	var owner account
	var keyID string
	var err error
	switch form.Get("grant_type") {
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		if owner, keyID, err = c.accounts.ofKey(form.Get("assertion"), skewed); err != nil {
			// Source: measured, 2026-08-25: for a deleted or disabled key the endpoint answers
			// 400 {"error":"invalid_grant"} without a description.
			return nil, &apiError{Code: http.StatusBadRequest, oauth: object{"error": "invalid_grant"}}
		}
	case "client_credentials":
		if owner, err = c.accounts.ofWorkload(form, skewed); err != nil {
			// Source: https://docs.stackit.cloud/platform/access-and-identity/service-accounts/authentication-flows:
			// tokens are accepted only when the issuer matches and all assertions are met; RFC 7523, 3.2.
			// The 401 is the mock's choice.
			return nil, &apiError{Code: http.StatusUnauthorized,
				oauth: object{"error": "invalid_client", "error_description": err.Error()}}
		}
	default:
		// Source: RFC 6749, 5.2.
		return nil, &apiError{Code: http.StatusBadRequest, oauth: object{"error": "unsupported_grant_type"}}
	}
	token, err := c.accessToken(owner, keyID, now, skewed)
	if err != nil {
		return nil, newError(http.StatusInternalServerError, "sign the token: %v", err)
	}
	return object{
		"access_token": token, "expires_in": int(c.tokenLifetime.Seconds()), "refresh_token": "", "scope": "",
		"token_type": "Bearer",
	}, nil
}

// accessToken returns a token that is dated by a clock that may be wrong.
func (c *Cloud) accessToken(owner account, keyID string, now, skewed time.Time) (string, error) {
	claims := accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: owner.subject, ID: uuid.NewString(), IssuedAt: jwt.NewNumericDate(skewed),
			ExpiresAt: jwt.NewNumericDate(skewed.Add(c.tokenLifetime)),
		},
		Email: owner.email, ProjectID: owner.projectID, KeyID: keyID, ValidUntil: now.Add(c.tokenLifetime).Unix(),
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(c.accounts.secret)
}

// ofKey returns the account whose key has signed the assertion, and the key's ID.
func (a *accounts) ofKey(assertion string, now time.Time) (owner account, keyID string, err error) {
	claims := jwt.RegisteredClaims{}
	_, err = jwt.ParseWithClaims(assertion, &claims, func(token *jwt.Token) (any, error) {
		keyID, _ = token.Header["kid"].(string)
		var known bool
		a.mu.RLock()
		defer a.mu.RUnlock()
		if owner, known = a.keys[keyID]; !known {
			return nil, fmt.Errorf("no key %q", keyID)
		}
		return owner.key, nil
	}, jwt.WithValidMethods([]string{jwt.SigningMethodRS512.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err == nil && (claims.Issuer != owner.email || claims.Subject != owner.subject) {
		err = errors.New("iss or sub is not the key's service account")
	}
	return owner, keyID, err
}

// ofWorkload returns the account that trusts the workload's token.
func (a *accounts) ofWorkload(form url.Values, now time.Time) (account, error) {
	// Source: the STACKIT SDK's core/clients/workload_identity_flow.go sends this type.
	const assertionType = "urn:schwarz:params:oauth:client-assertion-type:workload-jwt"
	if form.Get("client_assertion_type") != assertionType {
		return account{}, errors.New("unsupported client_assertion_type")
	}
	a.mu.RLock()
	owner, known := a.federated[form.Get("client_id")]
	a.mu.RUnlock()
	if !known {
		return account{}, errors.New("unknown client_id")
	}
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(form.Get("client_assertion"), claims, func(token *jwt.Token) (any, error) {
		keyID, _ := token.Header["kid"].(string)
		if key := owner.providerKeys[keyID]; key != nil {
			return key, nil
		}
		return nil, fmt.Errorf("the issuer's JWKS has no key %q", keyID)
	}, jwt.WithValidMethods([]string{"RS256", "RS384", "RS512"}), jwt.WithIssuer(owner.provider.Issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil {
		return account{}, err
	}
	for claim, want := range owner.provider.Assertions {
		values, isList := claims[claim].([]any)
		if !isList {
			values = []any{claims[claim]}
		}
		if !slices.Contains(values, any(want)) {
			return account{}, fmt.Errorf("the assertion about %s is not met", claim)
		}
	}
	return owner, nil
}

// authenticateCall returns the project of the request's bearer token; ok is false without a valid token,
// or if its key was revoked. It checks the mock's own expiry instead of exp, which TokenSkew changes.
func (c *Cloud) authenticateCall(r *http.Request) (projectID string, ok bool) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var claims accessClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return c.accounts.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	if err != nil || !c.clock.Now().Before(time.Unix(claims.ValidUntil, 0)) {
		return "", false
	}
	if claims.KeyID == "" {
		return claims.ProjectID, true
	}
	c.accounts.mu.RLock()
	defer c.accounts.mu.RUnlock()
	key, ok := c.accounts.keys[claims.KeyID]
	return key.projectID, ok
}
