// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/token"
)

// NewServiceAccountKey makes a service account with access to the project and returns its
// key file as JSON, private key included. The file names no token endpoint: give the
// client this Cloud's /token.
func (c *Cloud) NewServiceAccountKey(projectID string) ([]byte, error) {
	if err := c.checkProject(projectID); err != nil {
		return nil, err
	}
	return c.tokens.NewKey(projectID)
}

// RegisterServiceAccountKey gives a key from another Cloud's NewServiceAccountKey access
// to the project in this one. Generating a key is slow: a test with many clouds can
// generate one and register it.
func (c *Cloud) RegisterServiceAccountKey(projectID string, keyJSON []byte) error {
	if err := c.checkProject(projectID); err != nil {
		return err
	}
	return c.tokens.RegisterKey(projectID, keyJSON)
}

// FederatedIdentityProvider says whose tokens a service account trusts.
type FederatedIdentityProvider = token.Federation

// NewFederatedServiceAccount makes a service account with access to the project and returns
// its mail address. It has no key, but trusts the tokens of the provider; they are exchanged
// at this Cloud's /oauth/v2/token.
func (c *Cloud) NewFederatedServiceAccount(projectID string, provider FederatedIdentityProvider) (email string, err error) {
	if err := c.checkProject(projectID); err != nil {
		return "", err
	}
	return c.tokens.NewFederatedAccount(projectID, provider)
}

// RevokeServiceAccountKey makes a key from NewServiceAccountKey, and every token it got,
// invalid.
func (c *Cloud) RevokeServiceAccountKey(keyJSON []byte) error {
	return c.tokens.RevokeKey(keyJSON)
}

func (c *Cloud) checkProject(id string) error {
	if _, known := c.project(id); !known {
		return fmt.Errorf("no project %s", id)
	}
	return nil
}

// issue returns the handler of a token endpoint.
func issue(exchange func(*token.Issuer, []byte, token.Flaw) (token.Response, *token.Refusal)) handler {
	return func(c *Cloud, r *request) (any, *apiError) {
		flaw := token.Flaw{Skew: r.fault.TokenSkew, WithoutExpiry: r.fault.TokenWithoutExpiry}
		response, refusal := exchange(c.tokens, r.body, flaw)
		if refusal != nil {
			// Source: package token has one beside each.
			return nil, newError(refusal.Status, "%s", refusal.Reason)
		}
		return response, nil
	}
}
