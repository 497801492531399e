// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

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
