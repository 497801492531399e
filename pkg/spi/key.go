// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
)

const (
	defaultTokenURL = "https://service-account.api.stackit.cloud/token"
	stackitDomain   = ".stackit.cloud"
)

// Key is what a service-account key says of itself, without what is secret.
type Key struct {
	// ID is the key's UUID, Issuer the mail address of its service account.
	ID, Issuer string
	// CreatedAt is the zero time if the key does not say it.
	CreatedAt time.Time
	// ValidUntil is the zero time for a key that does not expire.
	ValidUntil time.Time
	// Inactive says that the key was switched off when it was written down.
	Inactive bool
	// TokenEndpoint is the URL where access tokens are asked for.
	TokenEndpoint string
}

// InspectKey reads a service-account key as a session does. The error, which repeats
// nothing of the key, is a *CredentialsError. It does not look at the private key and not
// at the dates.
func (c Config) InspectKey(keyJSON string) (*Key, error) {
	parsed, err := parseKey(keyJSON)
	if err != nil {
		return nil, err
	}
	endpoint, err := tokenEndpoint(c.TokenURL, parsed.Credentials.TokenEndpoint)
	if err != nil {
		return nil, err
	}
	key := &Key{ID: parsed.ID.String(), Issuer: parsed.Credentials.Iss, CreatedAt: parsed.CreatedAt, TokenEndpoint: endpoint}
	if parsed.ValidUntil != nil {
		key.ValidUntil = *parsed.ValidUntil
	}
	// The SDK's type does not tell a key without the field from one that is inactive.
	var state struct {
		Active *bool `json:"active"`
	}
	if err := json.Unmarshal([]byte(keyJSON), &state); err == nil && state.Active != nil {
		key.Inactive = !*state.Active
	}
	return key, nil
}

// parseKey reads a service-account key and refuses one that cannot work. No
// error repeats anything of the key.
func parseKey(keyJSON string) (*clients.ServiceAccountKeyResponse, error) {
	if keyJSON == "" {
		return nil, &CredentialsError{"the service-account key is missing"}
	}
	key := &clients.ServiceAccountKeyResponse{}
	if err := json.Unmarshal([]byte(keyJSON), key); err != nil {
		return nil, &CredentialsError{"the service-account key is not the JSON that STACKIT hands out for a key"}
	}
	if key.Credentials == nil {
		return nil, &CredentialsError{`the service-account key has no "credentials"`}
	}
	var missing []string
	for _, field := range []struct{ name, value string }{
		{"iss", key.Credentials.Iss}, {"kid", key.Credentials.Kid}, {"privateKey", privateKey(key)},
	} {
		if field.value == "" {
			missing = append(missing, "credentials."+field.name)
		}
	}
	if len(missing) > 0 {
		return nil, &CredentialsError{"the service-account key lacks " + strings.Join(missing, ", ")}
	}
	return key, nil
}

func privateKey(key *clients.ServiceAccountKeyResponse) string {
	if key.Credentials.PrivateKey == nil {
		return ""
	}
	return *key.Credentials.PrivateKey
}

// tokenEndpoint decides where the signed assertion is sent. The key is written
// by the tenant: a URL in it is followed only to STACKIT itself.
func tokenEndpoint(configured, fromKey string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	if fromKey == "" {
		return defaultTokenURL, nil
	}
	parsed, err := url.Parse(fromKey)
	if err != nil || parsed.Scheme != "https" || !strings.HasSuffix(parsed.Hostname(), stackitDomain) || parsed.User != nil {
		return "", &CredentialsError{fmt.Sprintf(
			"the service-account key names a token endpoint outside of *%s: set %s if it is right", stackitDomain, EnvTokenURL)}
	}
	return fromKey, nil
}
