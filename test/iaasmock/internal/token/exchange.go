// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// Response is an answer of the token endpoint. The refresh token is always empty: clients
// that get one use another grant next.
type Response struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	TokenType    string `json:"token_type"`
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

func (i *Issuer) respond(account account, keyID string, flaw Flaw) (Response, *Refusal) {
	token, err := i.issue(account, keyID, flaw)
	if err != nil {
		return Response{}, &Refusal{http.StatusInternalServerError, "sign the token: " + err.Error()}
	}
	return Response{AccessToken: token, ExpiresIn: int(i.lifetime.Seconds()), TokenType: "Bearer"}, nil
}
