// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"net/http"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/token"
)

// KeyForm is the format of a service-account key file; see WithKeyForm.
type KeyForm = token.KeyForm

// The forms of key files.
const (
	// KeyForm2026 is STACKIT's format since 2026. The file contains the token endpoint
	// https://accounts.stackit.cloud/oauth/v2/token and the service account's project.
	KeyForm2026 = token.KeyForm2026
	// KeyForm2025 is the format before 2026. The file contains neither token endpoint nor project.
	KeyForm2025 = token.KeyForm2025
)

// NewServiceAccountKey creates a service account with access to the project and returns its key
// file as JSON, including the private key. WithKeyForm sets the format. Clients must use this
// Cloud's /oauth/v2/token instead of the token endpoint in the file; the older endpoint, /token,
// accepts keys of both formats, too.
func (c *Cloud) NewServiceAccountKey(projectID string) ([]byte, error) {
	if err := c.checkProject(projectID); err != nil {
		return nil, err
	}
	return c.tokens.NewKey(projectID, c.keyForm)
}

// RegisterServiceAccountKey grants a key from another Cloud's NewServiceAccountKey access to a
// project of this Cloud. Generating a key is slow: a test with many Clouds can generate one key and
// register it in each.
func (c *Cloud) RegisterServiceAccountKey(projectID string, keyJSON []byte) error {
	if err := c.checkProject(projectID); err != nil {
		return err
	}
	return c.tokens.RegisterKey(projectID, keyJSON)
}

// FederatedIdentityProvider describes an issuer of tokens that a service account trusts.
type FederatedIdentityProvider = token.Federation

// NewFederatedServiceAccount creates a service account with access to the project and returns its
// email address. The account has no key, but trusts the provider's tokens: this Cloud's
// /oauth/v2/token exchanges them for access tokens. It is an error if the project does not exist, or
// if the provider has no issuer, no assertion about aud, or an invalid JWKS.
func (c *Cloud) NewFederatedServiceAccount(
	projectID string, provider FederatedIdentityProvider,
) (email string, err error) {
	if err := c.checkProject(projectID); err != nil {
		return "", err
	}
	return c.tokens.NewFederatedAccount(projectID, provider)
}

// RevokeServiceAccountKey invalidates a key from NewServiceAccountKey and every access token issued
// for it. It returns an error if the key is not registered with this Cloud or was revoked before.
func (c *Cloud) RevokeServiceAccountKey(keyJSON []byte) error {
	return c.tokens.RevokeKey(keyJSON)
}

func (c *Cloud) checkProject(id string) error {
	if _, known := c.project(id); !known {
		return fmt.Errorf("project %s does not exist", id)
	}
	return nil
}

// issueToken handles POST /oauth/v2/token, the endpoint of accounts.stackit.cloud.
func (c *Cloud) issueToken(r *request) (any, *apiError) {
	response, refusal := c.tokens.Exchange(r.body, flawOf(r))
	if refusal == nil {
		return response, nil
	}
	if refusal.Code == token.CodeInvalidGrant {
		// Source: measured, 2026-08-25: for a deleted or disabled key the endpoint answers
		// 400 {"error":"invalid_grant"} without a description.
		refusal.Reason = ""
	}
	// Source: package token names the source of each of the others.
	return nil, &apiError{Code: refusal.Status, oauth: refusal}
}

// issueKeyToken handles POST /token, the endpoint of service-account.api.stackit.cloud.
func (c *Cloud) issueKeyToken(r *request) (any, *apiError) {
	response, refusal := c.tokens.ExchangeKey(r.body, flawOf(r))
	switch {
	case refusal == nil:
		return response, nil
	case refusal.Code == token.CodeInvalidGrant:
		// Source: the STACKIT SDK's core/clients/key_flow.go matches on the message for an unknown
		// key. The 401 is the mock's choice.
		return nil, newError(http.StatusUnauthorized, "%s", refusal.Reason)
	default:
		// Source: package token names the source of each.
		return nil, newError(refusal.Status, "%s", refusal.Reason)
	}
}

func flawOf(r *request) token.Flaw {
	return token.Flaw{Skew: r.fault.TokenSkew, WithoutExpiry: r.fault.TokenWithoutExpiry}
}
