// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

const (
	clientCredentialsGrant = "client_credentials"
	// workloadAssertion is the type of assertion that the STACKIT SDK's
	// core/clients/workload_identity_flow.go sends.
	workloadAssertion = "urn:schwarz:params:oauth:client-assertion-type:workload-jwt"
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

// NewFederatedAccount makes a service account with access to the project, without a key, and
// returns its mail address.
func (i *Issuer) NewFederatedAccount(projectID string, federation Federation) (string, error) {
	if federation.Issuer == "" || federation.Assertions["aud"] == "" {
		return "", errors.New("a federated identity provider needs an issuer and an assertion about aud")
	}
	keys, err := publicKeys(federation.JWKS)
	if err != nil {
		return "", fmt.Errorf("decode the JWKS: %w", err)
	}
	added := federated{account: newAccount(projectID), Federation: federation, keys: keys}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.federated[added.email] = added
	return added.email, nil
}

// ExchangeWorkload turns the form of a request with a workload's own token into an access
// token, or says why not.
func (i *Issuer) ExchangeWorkload(body []byte, flaw Flaw) (Response, *Refusal) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		// Source: RFC 6749, 5.2: invalid_request.
		return Response{}, &Refusal{http.StatusBadRequest, "invalid form"}
	}
	if grant := form.Get("grant_type"); grant != clientCredentialsGrant {
		// Source: RFC 6749, 5.2: unsupported_grant_type.
		return Response{}, &Refusal{http.StatusBadRequest, fmt.Sprintf("unsupported grant_type %q", grant)}
	}
	if kind := form.Get("client_assertion_type"); kind != workloadAssertion {
		// Source: RFC 7521, 4.2.1: the parameter has to be the type of the assertion.
		return Response{}, &Refusal{http.StatusBadRequest, fmt.Sprintf("unsupported client_assertion_type %q", kind)}
	}
	i.mu.RLock()
	client, known := i.federated[form.Get("client_id")]
	i.mu.RUnlock()
	if !known {
		// Source: RFC 6749, 5.2: invalid_client. The 401, and not a 400, is the mock's choice.
		return Response{}, &Refusal{http.StatusUnauthorized, "unknown client_id"}
	}
	if err := client.verify(form.Get("client_assertion"), i.clock.Now().Add(flaw.Skew)); err != nil {
		// Source: https://docs.stackit.cloud/platform/access-and-identity/service-accounts/authentication-flows:
		// tokens are accepted only when the issuer matches and all assertions are met. The 401
		// is the mock's choice.
		return Response{}, &Refusal{http.StatusUnauthorized, err.Error()}
	}
	return i.respond(client.account, "", flaw)
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

// account is a service account.
type account struct{ email, subject, projectID string }

func newAccount(projectID string) account {
	return account{email: "mock-" + uuid.NewString()[:8] + "@sa.stackit.cloud", subject: uuid.NewString(), projectID: projectID}
}
