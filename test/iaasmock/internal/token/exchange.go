// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	jwtBearerGrant         = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	clientCredentialsGrant = "client_credentials"
	// workloadAssertion is the type of assertion that the STACKIT SDK's
	// core/clients/workload_identity_flow.go sends.
	workloadAssertion = "urn:schwarz:params:oauth:client-assertion-type:workload-jwt"
)

// Response is a successful answer of the token endpoint. The refresh token is always empty: with a
// refresh token, clients would switch to another grant.
type Response struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	TokenType    string `json:"token_type"`
}

// Refusal is the answer to a refused token request, in the form of RFC 6749, 5.2.
type Refusal struct {
	// Status is the HTTP status code of the answer.
	Status int `json:"-"`
	// Code is an error code of RFC 6749, such as CodeInvalidGrant.
	Code string `json:"error"`
	// Reason is a description for readers; "" if the answer has none.
	Reason string `json:"error_description,omitempty"`
}

// Error codes of RFC 6749, section 5.2, for Refusal.Code.
const (
	CodeInvalidRequest       = "invalid_request"
	CodeInvalidClient        = "invalid_client"
	CodeInvalidGrant         = "invalid_grant"
	CodeUnsupportedGrantType = "unsupported_grant_type"
)

// ExchangeKey answers a token request that presents the assertion of a service-account key, with an
// access token or a refusal. body is the URL-encoded form of the request.
func (i *Issuer) ExchangeKey(body []byte, flaw Flaw) (Response, *Refusal) {
	return i.exchange(body, flaw, map[string]grant{jwtBearerGrant: i.grantKey})
}

// Exchange is like ExchangeKey, but also accepts the token of a workload identity.
func (i *Issuer) Exchange(body []byte, flaw Flaw) (Response, *Refusal) {
	return i.exchange(body, flaw, map[string]grant{jwtBearerGrant: i.grantKey, clientCredentialsGrant: i.grantWorkload})
}

// grant returns the service account that a form's credentials belong to, and the ID of the key.
type grant func(form url.Values, skew time.Duration) (account, string, *Refusal)

func (i *Issuer) exchange(body []byte, flaw Flaw, grants map[string]grant) (Response, *Refusal) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		// Source: RFC 6749, 5.2.
		return Response{}, &Refusal{http.StatusBadRequest, CodeInvalidRequest, "invalid form"}
	}
	check := grants[form.Get("grant_type")]
	if check == nil {
		// Source: RFC 6749, 5.2.
		return Response{}, &Refusal{http.StatusBadRequest, CodeUnsupportedGrantType,
			fmt.Sprintf("unsupported grant_type %q", form.Get("grant_type"))}
	}
	account, keyID, refusal := check(form, flaw.Skew)
	if refusal != nil {
		return Response{}, refusal
	}
	token, err := i.issue(account, keyID, flaw)
	if err != nil {
		return Response{}, &Refusal{http.StatusInternalServerError, "server_error", "sign the token: " + err.Error()}
	}
	return Response{AccessToken: token, ExpiresIn: int(i.lifetime.Seconds()), TokenType: "Bearer"}, nil
}

// grantKey checks the assertion of a service-account key.
func (i *Issuer) grantKey(form url.Values, skew time.Duration) (account, string, *Refusal) {
	key, err := i.verifyAssertion(form.Get("assertion"), skew)
	if err != nil {
		// Source: RFC 7523, 3.1.
		return account{}, "", &Refusal{http.StatusBadRequest, CodeInvalidGrant, err.Error()}
	}
	return key.account, key.kid, nil
}

func (i *Issuer) verifyAssertion(assertion string, skew time.Duration) (registered, error) {
	var key registered
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(assertion, &claims, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		var ok bool
		if key, ok = i.key(kid); !ok {
			// Clients match on this text.
			return nil, fmt.Errorf("Key with kid %s was not found", kid) //nolint:staticcheck // STACKIT's own text
		}
		return key.public, nil
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodRS512.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return i.clock.Now().Add(skew) }))
	if err != nil {
		return registered{}, err
	}
	if claims.Issuer != key.email || claims.Subject != key.subject {
		return registered{}, errors.New("iss or sub is not the key's service account")
	}
	return key, nil
}

// grantWorkload checks a workload's own token.
func (i *Issuer) grantWorkload(form url.Values, skew time.Duration) (account, string, *Refusal) {
	if kind := form.Get("client_assertion_type"); kind != workloadAssertion {
		// Source: RFC 7521, 4.2.1: the parameter has to be the type of the assertion.
		return account{}, "",
			&Refusal{http.StatusBadRequest, CodeInvalidRequest, fmt.Sprintf("unsupported client_assertion_type %q", kind)}
	}
	i.mu.RLock()
	client, known := i.federated[form.Get("client_id")]
	i.mu.RUnlock()
	if !known {
		// Source: RFC 6749, 5.2. The 401, and not a 400, is the mock's choice.
		return account{}, "", &Refusal{http.StatusUnauthorized, CodeInvalidClient, "unknown client_id"}
	}
	if err := client.verify(form.Get("client_assertion"), i.clock.Now().Add(skew)); err != nil {
		// Source: https://docs.stackit.cloud/platform/access-and-identity/service-accounts/authentication-flows:
		// tokens are accepted only when the issuer matches and all assertions are met. RFC 7523, 3.2.
		// The 401 is the mock's choice.
		return account{}, "", &Refusal{http.StatusUnauthorized, CodeInvalidClient, err.Error()}
	}
	return client.account, "", nil
}

// Federation is a federated identity provider: an issuer of tokens that a service account trusts.
type Federation struct {
	// Issuer is the required iss of a token.
	Issuer string
	// Assertions are the claims that a token must have, with their values. STACKIT requires an
	// assertion about aud; if a claim is a list, one item must have the value.
	Assertions map[string]string
	// JWKS holds the issuer's public keys (RFC 7517). STACKIT fetches them from the issuer.
	JWKS []byte
}

// federated is a service account with a federated identity provider.
type federated struct {
	account
	Federation
	keys map[string]any
}

// newFederated creates a service account that trusts the federation's issuer.
func newFederated(projectID string, federation Federation) (federated, error) {
	if federation.Issuer == "" || federation.Assertions["aud"] == "" { // an empty value would not be checked
		return federated{}, errors.New("a federated identity provider must have an issuer and an assertion about aud")
	}
	keys, err := publicKeys(federation.JWKS)
	if err != nil {
		return federated{}, fmt.Errorf("decode the JWKS: %w", err)
	}
	return federated{account: newAccount(projectID), Federation: federation, keys: keys}, nil
}

// verify checks the workload's token at the time now.
func (f *federated) verify(assertion string, now time.Time) error {
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(assertion, claims, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		key, ok := f.keys[kid]
		if !ok {
			return nil, fmt.Errorf("the issuer's JWKS has no key %q", kid)
		}
		return key, nil
	},
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"}),
		jwt.WithIssuer(f.Issuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil {
		return err
	}
	for claim, want := range f.Assertions {
		items, isList := claims[claim].([]any)
		if !isList {
			items = []any{claims[claim]}
		}
		if !slices.Contains(items, any(want)) {
			return fmt.Errorf("the assertion about %s is not met", claim)
		}
	}
	return nil
}

// jwk is a public key in an issuer's JWKS: of type RSA with n and e, or EC with crv, x and y
// (RFC 7518, 6).
type jwk struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	N     number `json:"n"`
	E     number `json:"e"`
	Curve string `json:"crv"`
	X     number `json:"x"`
	Y     number `json:"y"`
}

// number is an unsigned number in big-endian bytes, encoded as base64url.
type number []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *number) UnmarshalText(text []byte) (err error) {
	*n, err = base64.RawURLEncoding.DecodeString(string(text))
	return err
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// publicKeys returns the keys of a JWKS by their IDs.
func publicKeys(jwks []byte) (map[string]any, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("the JWKS has no keys")
	}
	keys := map[string]any{}
	for _, key := range set.Keys {
		var err error
		if keys[key.ID], err = key.public(); err != nil {
			return nil, fmt.Errorf("key %q: %w", key.ID, err)
		}
	}
	return keys, nil
}

func (k *jwk) public() (any, error) {
	switch k.Type {
	case "RSA":
		modulus, exponent := new(big.Int).SetBytes(k.N), new(big.Int).SetBytes(k.E)
		if modulus.BitLen() < 1024 || !exponent.IsInt64() || exponent.Int64() < 3 {
			return nil, errors.New("n or e is missing or too small")
		}
		return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
	case "EC":
		curve, ok := curves[k.Curve]
		if !ok {
			return nil, fmt.Errorf("unknown crv %q", k.Curve)
		}
		return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, k.X, k.Y))
	default:
		return nil, fmt.Errorf("unknown kty %q", k.Type)
	}
}
