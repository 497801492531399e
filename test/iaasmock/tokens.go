// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

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

// tokenIssuer knows the service account keys and the tokens they got.
type tokenIssuer struct {
	clock    clock.PassiveClock
	lifetime time.Duration
	// secret signs access tokens; another cloud's tokens are worthless here.
	secret []byte

	mu   sync.RWMutex
	keys map[string]registeredKey
}

func newTokenIssuer(c clock.PassiveClock, lifetime time.Duration) *tokenIssuer {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails, by its documentation
	return &tokenIssuer{clock: c, lifetime: lifetime, secret: secret, keys: map[string]registeredKey{}}
}

func (t *tokenIssuer) register(key registeredKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys[key.kid] = key
}

func (t *tokenIssuer) revoke(kid string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.keys[kid]
	delete(t.keys, kid)
	return known
}

func (t *tokenIssuer) key(kid string) (registeredKey, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	key, ok := t.keys[kid]
	return key, ok
}

// tokenResponse is what the token endpoint answers. The refresh token stays
// empty: clients that see one go on with another grant.
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	TokenType    string `json:"token_type"`
}

// accessClaims are those of a STACKIT access token that clients look at.
type accessClaims struct {
	jwt.RegisteredClaims
	Email     string `json:"email"`
	ProjectID string `json:"stackit/project/project.id"`
	KeyID     string `json:"kid"`
	// ValidUntil is when the token really ends, in Unix seconds.
	ValidUntil int64 `json:"validUntil"`
}

// exchange turns the form of a token request into an access token.
func (t *tokenIssuer) exchange(body []byte, fault *Fault) (tokenResponse, *apiError) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return tokenResponse{}, badRequest("invalid form")
	}
	if grant := form.Get("grant_type"); grant != jwtBearerGrant {
		return tokenResponse{}, badRequest("unsupported grant_type %q", grant)
	}
	key, err := t.verifyAssertion(form.Get("assertion"), fault.TokenSkew)
	if err != nil {
		return tokenResponse{}, newError(http.StatusUnauthorized, "%v", err)
	}
	token, err := t.issue(key, fault)
	if err != nil {
		return tokenResponse{}, newError(http.StatusInternalServerError, "sign the token: %v", err)
	}
	return tokenResponse{AccessToken: token, ExpiresIn: int(t.lifetime.Seconds()), TokenType: "Bearer"}, nil
}

func (t *tokenIssuer) verifyAssertion(assertion string, skew time.Duration) (registeredKey, error) {
	var key registeredKey
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(assertion, &claims, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		var ok bool
		if key, ok = t.key(kid); !ok {
			// Clients look for these words.
			return nil, fmt.Errorf("Key with kid %s was not found", kid) //nolint:staticcheck // the service's own text
		}
		return key.public, nil
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodRS512.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return t.clock.Now().Add(skew) }))
	if err != nil {
		return registeredKey{}, err
	}
	if claims.Issuer != key.email || claims.Subject != key.subject {
		return registeredKey{}, errors.New("iss or sub does not belong to the key")
	}
	return key, nil
}

func (t *tokenIssuer) issue(key registeredKey, fault *Fault) (string, error) {
	now := t.clock.Now()
	end, dated := now.Add(t.lifetime), now.Add(fault.TokenSkew)
	claims := accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   key.subject,
			IssuedAt:  jwt.NewNumericDate(dated),
			ExpiresAt: jwt.NewNumericDate(dated.Add(t.lifetime)),
			ID:        uuid.NewString(),
		},
		Email: key.email, ProjectID: key.projectID, KeyID: key.kid, ValidUntil: end.Unix(),
	}
	if fault.TokenWithoutExpiry {
		claims.ExpiresAt = nil
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(t.secret)
}

// authenticate returns the key behind a request's bearer token. What the token
// says of its expiry is for clients: a fault may have made it wrong.
func (t *tokenIssuer) authenticate(r *http.Request) (registeredKey, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return registeredKey{}, false
	}
	var claims accessClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return t.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	if err != nil || !t.clock.Now().Before(time.Unix(claims.ValidUntil, 0)) {
		return registeredKey{}, false
	}
	return t.key(claims.KeyID)
}
