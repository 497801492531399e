// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"k8s.io/utils/clock"
)

// Identity is what the token of a workload identity says of itself.
type Identity struct {
	// Issuer and Subject are what STACKIT compares with the service account's federated
	// identity provider.
	Issuer, Subject string
	// Audience is never empty.
	Audience []string
	// ExpiresAt is in the future.
	ExpiresAt time.Time
}

// InspectIdentity reads the token of a workload identity as a session does before each time
// that it sends it. now is when it is going to be sent. The error, which repeats nothing of
// the token, is a *CredentialsError: the token is no JWT, has expired, has no audience, or is
// one for a Kubernetes API server. Nobody but STACKIT can tell whether its signature is right.
func (c Config) InspectIdentity(token string, now time.Time) (*Identity, error) {
	claims, err := identityClaims(token)
	switch {
	case err != nil:
		return nil, err
	case claims.ExpiresAt == nil:
		return nil, identityError("token has no exp, must have an end")
	case !now.Before(claims.ExpiresAt.Time):
		return nil, identityError("token expired at %s UTC, must be renewed", claims.ExpiresAt.UTC().Format(time.DateTime))
	case len(claims.Audience) == 0:
		return nil, identityError("token has no aud, must have the audience that the service account's federated identity provider asks for")
	case slices.ContainsFunc(claims.Audience, c.isAPIServers()):
		return nil, identityError("token is one for the Kubernetes API server and is sent to nobody else, must be one with an audience of its own")
	}
	return &Identity{Issuer: claims.Issuer, Subject: claims.Subject, Audience: claims.Audience, ExpiresAt: claims.ExpiresAt.Time}, nil
}

// identityClaims reads a token without looking at its signature.
func identityClaims(token string) (*jwt.RegisteredClaims, error) {
	if len(token) > maxIdentity {
		return nil, identityError("token has more than %d bytes", maxIdentity)
	}
	claims := &jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return nil, identityError("token is no JWT")
	}
	claims.Audience = slices.DeleteFunc(claims.Audience, func(audience string) bool { return audience == "" })
	return claims, nil
}

// isAPIServers returns what says whether an audience is a Kubernetes API server's: by its
// usual form, or because the token that this pod logs in with has it. So neither the pod's own
// token nor that of another one is sent.
func (c Config) isAPIServers() func(audience string) bool {
	var own []string
	if token, err := readFile(cmp.Or(c.PodTokenFile, defaultPodTokenFile), maxIdentity); err == nil {
		if claims, err := identityClaims(token); err == nil {
			own = claims.Audience
		}
	}
	return func(audience string) bool {
		return strings.Contains(strings.ToLower(audience), "kubernetes.default") || slices.Contains(own, audience)
	}
}

// identityExchange uses the SDK's flow for workload identities, once: the flow would take
// each field that is not set from the environment. The token of a file is read for each
// exchange, since whoever wrote it renews it.
func identityExchange(config Config, email, token, tokenFile string, clock clock.PassiveClock) (exchange, error) {
	if email == "" {
		return nil, identityError("serviceAccountEmail is missing")
	}
	var file identityFile
	var err error
	if token == "" {
		file, err = config.identityFile(tokenFile)
	} else {
		_, err = config.InspectIdentity(token, clock.Now())
	}
	if err != nil {
		return nil, err
	}
	return func(transport http.RoundTripper, _ func() bool) (string, error) {
		token := token
		if token == "" {
			var err error
			if token, err = file.read(); err != nil {
				return "", err
			}
		}
		if _, err := config.InspectIdentity(token, clock.Now()); err != nil {
			return "", err
		}
		flow := &clients.WorkloadIdentityFederationFlow{}
		err := flow.Init(&clients.WorkloadIdentityFederationFlowConfig{
			TokenUrl:               config.IdentityEndpoint(),
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
