// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"k8s.io/utils/ptr"
)

// maxKey is the size of the largest service-account key, in bytes. A 4,096-bit key has about 5,000.
const maxKey = 16 << 10

// Key holds the fields of a service-account key that are not secret.
type Key struct {
	// ID is the UUID of the key, Issuer the email address of its service account.
	ID, Issuer string
	// ProjectID is the UUID of the service account's project; "" if the key does not contain it, as
	// before 2026. The account may have permissions in other projects, too.
	ProjectID string
	// ValidUntil is when the key expires; the zero time for a key that does not expire.
	ValidUntil time.Time
	// Inactive reports whether the key was already deactivated when its file was created.
	Inactive bool
	// TokenEndpoint is the URL from which access tokens are fetched.
	TokenEndpoint string
}

// InspectKey parses a service-account key as a session does, but checks neither the private key nor
// the dates. The error is a *CredentialsError that does not quote the key.
func (c Config) InspectKey(keyJSON string) (*Key, error) {
	key, err := parseKey(keyJSON)
	if err != nil {
		return nil, err
	}
	endpoint, err := c.tokenEndpoint(key.Credentials.TokenEndpoint)
	if err != nil {
		return nil, err
	}
	return &Key{ID: key.ID.String(), Issuer: key.Credentials.Iss, ProjectID: key.ProjectID,
		ValidUntil: ptr.Deref(key.ValidUntil, time.Time{}), Inactive: !ptr.Deref(key.Active, true),
		TokenEndpoint: endpoint}, nil
}

// issuedKey has the fields in use of a service-account key as STACKIT issues it. The SDK's own type has
// no project, and cannot tell a missing "active" from false.
type issuedKey struct {
	ID          uuid.UUID                             `json:"id"`
	ProjectID   string                                `json:"projectId"`
	Active      *bool                                 `json:"active"`
	ValidUntil  *time.Time                            `json:"validUntil"`
	Credentials *clients.ServiceAccountKeyCredentials `json:"credentials"`
}

// parseKey parses a service-account key, and refuses an unusable key. It does not check the
// private key. No error quotes anything of the key.
func parseKey(keyJSON string) (*issuedKey, error) {
	if keyJSON == "" {
		return nil, keyError("is missing")
	}
	if len(keyJSON) > maxKey {
		return nil, keyError("has %d bytes: must have at most %d: %s", len(keyJSON), maxKey, useTheFile)
	}
	key := &issuedKey{}
	err := json.Unmarshal([]byte(keyJSON), key)
	switch text := strings.TrimSpace(keyJSON); {
	case err == nil && key.Credentials != nil:
	case isBase64(text):
		return nil, keyError(
			"is encoded in base64: use the JSON itself (a Secret's data is encoded once, its stringData not at all)")
	case keyPath.MatchString(text):
		return nil, keyError("is the path of a file: use the file's content")
	default:
		return nil, keyError("is not the JSON that STACKIT issues for a key: %s: %s", decodersWords(err), useTheFile)
	}
	var missing []string
	for _, field := range []struct{ name, value string }{
		{"iss", key.Credentials.Iss}, {"kid", key.Credentials.Kid}, {"privateKey", ptr.Deref(key.Credentials.PrivateKey, "")},
	} {
		if field.value == "" {
			missing = append(missing, "credentials."+field.name)
		}
	}
	if len(missing) > 0 {
		return nil, keyError("lacks %s: use the whole file that STACKIT issued when the key was created, or create "+
			"a new key", strings.Join(missing, ", "))
	}
	return key, nil
}

func keyError(format string, args ...any) error {
	return &CredentialsError{Reason: "the service-account key " + fmt.Sprintf(format, args...)}
}

const useTheFile = "use the JSON file that STACKIT issued, unchanged"

// decodersWords returns what the JSON decoder says about a key, without the values that it quotes. err
// is nil for JSON without credentials.
func decodersWords(err error) string {
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return `it has no "credentials"`
	case errors.As(err, &syntax):
		// Gardener takes "invalid character" for a login that failed.
		words := strings.Replace(syntax.Error(), "invalid", "unexpected", 1)
		return fmt.Sprintf("%s (at byte %d)", words, syntax.Offset)
	case errors.As(err, &wrongType):
		kind, _, _ := strings.Cut(wrongType.Value, " ") // a number stands behind it
		return strings.TrimSpace("cannot unmarshal " + kind + " " + wrongType.Field)
	default: // the error of a UUID or date quotes it
		return "id and credentials.sub must be UUIDs, validUntil a date"
	}
}

// isBase64 reports whether a text is JSON in base64.
func isBase64(text string) bool {
	decoded, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(decoded)), "{")
}

// keyPath matches what is a path rather than a key.
var keyPath = regexp.MustCompile(`^(file:|~|\.{0,2}/)[^\n{]*$|^[^\n{]*\.json$`)

// keyExchange returns an exchange that uses the SDK's key flow once, and the URL of the token endpoint.
// Each exchange has a new flow, because a second call of a flow panics on a token without expiry (SDK
// core v0.27.1, clients/auth_flow.go). A key that cannot work is refused at once.
func keyExchange(config Config, keyJSON string) (exchange, string, error) {
	key, err := parseKey(keyJSON)
	if err != nil {
		return nil, "", err
	}
	tokenURL, err := config.tokenEndpoint(key.Credentials.TokenEndpoint)
	if err != nil {
		return nil, "", err
	}
	newFlow := func(transport http.RoundTripper) (*clients.KeyFlow, error) {
		flow := &clients.KeyFlow{}
		err := flow.Init(&clients.KeyFlowConfig{
			ServiceAccountKey: &clients.ServiceAccountKeyResponse{Credentials: key.Credentials},
			PrivateKey:        ptr.Deref(key.Credentials.PrivateKey, ""),
			TokenUrl:          tokenURL,
			AuthHTTPClient:    &http.Client{Transport: transport, CheckRedirect: refuseRedirects},
		})
		if err != nil {
			return nil, keyError("has a credentials.privateKey that cannot be used: must be an RSA key in PEM form, without a " +
				"passphrase: use the private key that belongs to this service-account key, or create a new key")
		}
		return flow, nil
	}
	if _, err := newFlow(nil); err != nil {
		return nil, "", err
	}
	return func(transport http.RoundTripper) (string, error) {
		flow, err := newFlow(transport)
		if err != nil {
			return "", err
		}
		return accessToken(flow)
	}, tokenURL, nil
}
