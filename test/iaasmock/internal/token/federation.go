// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Federation is a service account's federated identity provider: whose tokens it trusts.
type Federation struct {
	// Issuer is what a token's iss must be.
	Issuer string
	// Assertions are the claims that a token must have, with their values. STACKIT asks for
	// one about aud; of a claim that is a list, one item must have the value.
	Assertions map[string]string
	// JWKS are the issuer's public keys (RFC 7517). STACKIT fetches them from the issuer.
	JWKS []byte
}

// federated is a service account with a federated identity provider.
type federated struct {
	account
	Federation
	keys map[string]any
}

// newFederated makes a service account that trusts the federation's issuer.
func newFederated(projectID string, federation Federation) (federated, error) {
	if federation.Issuer == "" || federation.Assertions["aud"] == "" {
		return federated{}, errors.New("a federated identity provider needs an issuer and an assertion about aud")
	}
	keys, err := publicKeys(federation.JWKS)
	if err != nil {
		return federated{}, fmt.Errorf("decode the JWKS: %w", err)
	}
	return federated{account: newAccount(projectID), Federation: federation, keys: keys}, nil
}

// verify checks the workload's token, by the time that it is.
func (f *federated) verify(assertion string, now time.Time) error {
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(assertion, claims, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		key, ok := f.keys[kid]
		if !ok {
			return nil, fmt.Errorf("the issuer has no key %q", kid)
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
