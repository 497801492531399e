// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package token is the mock's token endpoint: it knows service-account keys, exchanges
// signed assertions, and the tokens of workloads that it trusts, for access tokens, and finds
// the project of an access token.
package token

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"k8s.io/utils/clock"
)

const jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// Issuer issues access tokens for the service accounts that it knows, and checks
// them. It is safe for concurrent use.
type Issuer struct {
	clock    clock.PassiveClock
	lifetime time.Duration
	// secret signs access tokens. Each Issuer has its own, so that tokens of another one
	// are invalid.
	secret []byte

	mu   sync.RWMutex
	keys map[string]registered
	// federated are the service accounts without a key, by their mail address.
	federated map[string]federated
}

// NewIssuer returns an Issuer whose tokens are valid for lifetime.
func NewIssuer(c clock.PassiveClock, lifetime time.Duration) *Issuer {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails, by its documentation
	return &Issuer{clock: c, lifetime: lifetime, secret: secret, keys: map[string]registered{}, federated: map[string]federated{}}
}

func (i *Issuer) add(key registered) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[key.kid] = key
}

func (i *Issuer) key(kid string) (registered, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	key, ok := i.keys[kid]
	return key, ok
}

// Response is an answer of the token endpoint. The refresh token is always empty: clients
// that get one use another grant next.
type Response struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	TokenType    string `json:"token_type"`
}

// accessClaims are the claims of a STACKIT access token that clients read.
type accessClaims struct {
	jwt.RegisteredClaims
	Email     string `json:"email"`
	ProjectID string `json:"stackit/project/project.id"`
	// KeyID is empty for a workload.
	KeyID string `json:"kid,omitempty"`
	// ValidUntil is when the mock stops accepting the token, in Unix seconds.
	ValidUntil int64 `json:"validUntil"`
}

// Flaw makes an issued token wrong on purpose.
type Flaw struct {
	// Skew is how far the issuer's clock is ahead of the client's (negative: behind).
	Skew time.Duration
	// WithoutExpiry leaves out exp.
	WithoutExpiry bool
}

// Refusal is the answer to a request that gets no token.
type Refusal struct {
	// Status is the HTTP status code of the answer.
	Status int
	Reason string
}

// Exchange turns the form of a token request into an access token, or says why not.
func (i *Issuer) Exchange(body []byte, flaw Flaw) (Response, *Refusal) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		// Source: RFC 6749, 5.2: invalid_request.
		return Response{}, &Refusal{http.StatusBadRequest, "invalid form"}
	}
	if grant := form.Get("grant_type"); grant != jwtBearerGrant {
		// Source: RFC 6749, 5.2: unsupported_grant_type.
		return Response{}, &Refusal{http.StatusBadRequest, fmt.Sprintf("unsupported grant_type %q", grant)}
	}
	key, err := i.verifyAssertion(form.Get("assertion"), flaw.Skew)
	if err != nil {
		// Source: RFC 7523, 3: an assertion has to be valid. The STACKIT SDK's
		// core/clients/key_flow.go matches on the message for an unknown key. The 401 is the
		// mock's choice.
		return Response{}, &Refusal{http.StatusUnauthorized, err.Error()}
	}
	return i.respond(key.account, key.kid, flaw)
}

func (i *Issuer) respond(account account, keyID string, flaw Flaw) (Response, *Refusal) {
	token, err := i.issue(account, keyID, flaw)
	if err != nil {
		return Response{}, &Refusal{http.StatusInternalServerError, "sign the token: " + err.Error()}
	}
	return Response{AccessToken: token, ExpiresIn: int(i.lifetime.Seconds()), TokenType: "Bearer"}, nil
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
		return registered{}, errors.New("iss or sub does not belong to the key")
	}
	return key, nil
}

func (i *Issuer) issue(account account, keyID string, flaw Flaw) (string, error) {
	now := i.clock.Now()
	end, dated := now.Add(i.lifetime), now.Add(flaw.Skew)
	claims := accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   account.subject,
			IssuedAt:  jwt.NewNumericDate(dated),
			ExpiresAt: jwt.NewNumericDate(dated.Add(i.lifetime)),
			ID:        uuid.NewString(),
		},
		Email: account.email, ProjectID: account.projectID, KeyID: keyID, ValidUntil: end.Unix(),
	}
	if flaw.WithoutExpiry {
		claims.ExpiresAt = nil
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(i.secret)
}

// Authenticate returns the project of the request's bearer token. It ignores exp, which a
// Flaw may have made wrong.
func (i *Issuer) Authenticate(r *http.Request) (projectID string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	var claims accessClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return i.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	if err != nil || !i.clock.Now().Before(time.Unix(claims.ValidUntil, 0)) {
		return "", false
	}
	if claims.KeyID == "" {
		return claims.ProjectID, true
	}
	key, ok := i.key(claims.KeyID)
	return key.projectID, ok
}
