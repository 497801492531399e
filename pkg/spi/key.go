// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
)

const (
	defaultTokenURL = "https://service-account.api.stackit.cloud/token"
	stackitDomain   = ".stackit.cloud"
)

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
