// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package workload provides an issuer of workload identities for tests. Like a Kubernetes API
// server, it signs tokens and publishes the public keys with which a service account of the mock
// cloud verifies them.
package workload

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"maps"
	"math/big"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	issuerURL = "https://issuer.example"
	keyID     = "first"
	// Audience is the audience of the tokens, which service accounts from NewServiceAccount
	// require.
	Audience = "sts.accounts.stackit.cloud"
)

// Issuer issues tokens of workload identities. It is safe for concurrent use.
type Issuer struct{ key *rsa.PrivateKey }

// NewIssuer returns an Issuer with a key of its own, which is short: a longer one takes long to make.
func NewIssuer() (*Issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // for tests alone
	return &Issuer{key}, err
}

// NewServiceAccount creates a service account of the cloud that trusts the issuer's tokens with
// the Audience, and returns its email address.
func (i *Issuer) NewServiceAccount(cloud *iaasmock.Cloud, projectID string) (email string, err error) {
	encode := base64.RawURLEncoding.EncodeToString
	return cloud.NewFederatedServiceAccount(projectID, iaasmock.FederatedIdentityProvider{
		Issuer: issuerURL, Assertions: map[string]string{"aud": Audience},
		JWKS: fmt.Appendf(nil, `{"keys":[{"kid":%q,"kty":"RSA","n":%q,"e":%q}]}`,
			keyID, encode(i.key.N.Bytes()), encode(big.NewInt(int64(i.key.E)).Bytes())),
	})
}

// Token returns a token that service accounts from NewServiceAccount accept until it expires. change
// replaces claims by name, which may make the token invalid; a nil value removes the claim.
func (i *Issuer) Token(expires time.Time, change map[string]any) (string, error) {
	claims := jwt.MapClaims{"iss": issuerURL, "aud": Audience, "sub": "a workload", "exp": expires.Unix()}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = keyID
	return token.SignedString(i.key)
}
