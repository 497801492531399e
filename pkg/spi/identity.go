// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"k8s.io/utils/clock"
)

// InspectIdentity parses the token of a workload identity and checks whether a session would send
// it at the time now. The returned claims have an audience, and an ExpiresAt after now. The error
// is a *CredentialsError that does not quote the token. Signature, issuer and subject are not
// verified: only STACKIT can do that.
func InspectIdentity(token string, now time.Time) (*jwt.RegisteredClaims, error) {
	if len(token) > maxIdentity {
		return nil, identityError("token is too large: must have at most %d bytes", maxIdentity)
	}
	claims := &jwt.RegisteredClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(token, claims)
	switch {
	case err != nil:
		return nil, identityError("token is not a JWT")
	case claims.ExpiresAt == nil, len(claims.Audience) == 0:
		return nil, identityError("token has no expiry (exp) or no audience (aud): it needs both, and the audience that " +
			"the service account's federated identity provider requires")
	case !now.Before(claims.ExpiresAt.Time):
		return nil, identityError("token expired at %s UTC: renew it", claims.ExpiresAt.UTC().Format(time.DateTime))
	case slices.ContainsFunc(claims.Audience, apiServerAudience.MatchString):
		return nil, identityError("token is for the Kubernetes API server and must not be sent elsewhere: " +
			"it needs an audience of its own")
	}
	return claims, nil
}

// apiServerAudience matches the usual audiences of API servers, as a URL or a host: "kubernetes"
// alone (Gardener's shoots), and every name that begins with "kubernetes.default" (kube-apiserver's
// default).
var apiServerAudience = regexp.MustCompile(`(?i)^\s*([a-z][a-z0-9+.-]*:)?/*kubernetes(\.default.*|[:/].*|\s*)$`)

// identityExchange returns an exchange that uses the SDK's flow for workload identities once. All
// fields are set, because the flow takes unset ones from the environment.
func identityExchange(tokenURL, email, token string, clock clock.PassiveClock) (exchange, error) {
	if email == "" {
		return nil, identityError("serviceAccountEmail is missing")
	}
	if _, err := InspectIdentity(token, clock.Now()); err != nil {
		return nil, err
	}
	return func(transport http.RoundTripper) (string, error) {
		if _, err := InspectIdentity(token, clock.Now()); err != nil {
			return "", err // it has expired meanwhile
		}
		flow := &clients.WorkloadIdentityFederationFlow{}
		err := flow.Init(&clients.WorkloadIdentityFederationFlowConfig{
			TokenUrl:               tokenURL,
			ClientID:               email,
			HTTPTransport:          transport,
			AuthHTTPClient:         &http.Client{Transport: transport, CheckRedirect: refuseRedirects},
			FederatedTokenFunction: func(context.Context) (string, error) { return token, nil },
		})
		if err != nil {
			return "", errors.New("the workload identity cannot be used")
		}
		return accessToken(flow)
	}, nil
}

// maxIdentity is the size of the largest token of a workload identity, in bytes. kube-apiserver's
// have about 1,000.
const maxIdentity = 16 << 10
