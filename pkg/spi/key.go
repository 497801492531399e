// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
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
	parsed, err := parseKey(keyJSON)
	if err != nil {
		return nil, err
	}
	endpoint, err := c.tokenEndpoint(parsed.Credentials.TokenEndpoint)
	if err != nil {
		return nil, err
	}
	key := &Key{ID: parsed.ID.String(), Issuer: parsed.Credentials.Iss, TokenEndpoint: endpoint}
	if parsed.ValidUntil != nil {
		key.ValidUntil = *parsed.ValidUntil
	}
	// The SDK's type has no project, and cannot tell a missing "active" from false.
	var more struct {
		ProjectID string `json:"projectId"`
		Active    *bool  `json:"active"`
	}
	_ = json.Unmarshal([]byte(keyJSON), &more) // a field of another type counts as missing
	key.ProjectID, key.Inactive = more.ProjectID, more.Active != nil && !*more.Active
	return key, nil
}

// parseKey parses a service-account key, and refuses an unusable key. It does not check the
// private key. No error quotes anything of the key.
func parseKey(keyJSON string) (*clients.ServiceAccountKeyResponse, error) {
	if keyJSON == "" {
		return nil, &CredentialsError{Reason: "the service-account key is missing"}
	}
	if len(keyJSON) > maxKey {
		return nil, &CredentialsError{Reason: fmt.Sprintf(
			"the service-account key has %d bytes: must have at most %d: %s", len(keyJSON), maxKey, useTheFile)}
	}
	key := &clients.ServiceAccountKeyResponse{}
	if err := json.Unmarshal([]byte(keyJSON), key); err != nil || key.Credentials == nil {
		return nil, &CredentialsError{Reason: "the service-account key " + describeNonKey(keyJSON)}
	}
	var missing []string
	for _, field := range []struct{ name, value string }{
		{"iss", key.Credentials.Iss}, {"kid", key.Credentials.Kid}, {"privateKey", privateKey(key)},
	} {
		if field.value == "" {
			missing = append(missing, "credentials."+field.name)
		}
	}
	if len(missing) == 0 {
		return key, nil
	}
	remedy := "use the whole file that STACKIT issued when the key was created, or create a new key"
	if len(missing) == 1 && privateKey(key) == "" && key.KeyOrigin == userProvided {
		remedy = "you generated the key pair, so STACKIT does not have the private key; add it to this field, in PEM form"
	}
	return nil, &CredentialsError{Reason: "the service-account key lacks " + strings.Join(missing, ", ") + ": " + remedy}
}

// userProvided is the keyOrigin of a key whose key pair the user generated.
const userProvided = "USER_PROVIDED"

func privateKey(key *clients.ServiceAccountKeyResponse) string {
	if key.Credentials.PrivateKey == nil {
		return ""
	}
	return *key.Credentials.PrivateKey
}

// describeNonKey describes a text that is not a key, together with the fix, and does not quote the text.
// Files pass through editors, shells and base64 on their way into a Secret.
func describeNonKey(text string) string {
	switch trimmed := strings.TrimSpace(text); {
	case isUTF16(text):
		return "is UTF-16 text, as PowerShell's > writes it: save the file as UTF-8"
	case strings.HasPrefix(text, "\ufeff"):
		return "begins with a byte order mark (BOM): save the file as UTF-8 without one"
	case strings.HasPrefix(trimmed, "{"), strings.HasPrefix(trimmed, "["):
		return describeNonKeyJSON(text) + ": " + useTheFile
	case strings.HasPrefix(trimmed, "-----BEGIN"):
		return "is a PEM file, not a key with its credentials: " + useTheFile
	case strings.HasPrefix(trimmed, `"`), strings.HasPrefix(trimmed, "'"):
		return "is a quoted string: use the JSON itself"
	case isBase64(trimmed):
		return "is encoded in base64: use the JSON itself (a Secret's data is encoded once, its stringData not at all)"
	case keyPath.MatchString(trimmed):
		return "is the path of a file: use the file's content"
	case jwtForm.MatchString(trimmed):
		return "is a token, not a key: " + useTheFile
	case keyYAML.MatchString(text):
		return "is YAML, not JSON: " + useTheFile
	default:
		return otherText
	}
}

const (
	useTheFile = "use the JSON file that STACKIT issued, unchanged"
	// otherText describes a text of unknown form.
	otherText = "is not the JSON that STACKIT issues for a key: " + useTheFile
)

var (
	keyPath = regexp.MustCompile(`^(file:|@|~|\$|%|\.{0,2}/|\\\\|[A-Za-z]:[\\/])[^\n{]*$|^[^\n{]*\.json$`)
	jwtForm = regexp.MustCompile(`^ey[\w-]+\.[\w-]+\.[\w-]*$`)
	keyYAML = regexp.MustCompile(`(?m)^\s*credentials:`)
)

// isUTF16 reports whether a text is UTF-16, with or without a byte order mark.
func isUTF16(text string) bool { return strings.Count(text, "\x00")*3 > len(text) }

// isBase64 reports whether a text is a key or a PEM file, encoded in base64 once or several times.
func isBase64(text string) bool {
	text = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(text)
	bytes, err := base64.RawStdEncoding.DecodeString(text)
	decoded := strings.TrimSpace(strings.TrimPrefix(string(bytes), "\ufeff"))
	isKey := strings.HasPrefix(decoded, "{") && utf8.ValidString(decoded) || strings.HasPrefix(decoded, "-----BEGIN")
	return err == nil && decoded != "" && (isKey || isUTF16(decoded) || isBase64(decoded))
}

// describeNonKeyJSON describes a text that looks like JSON but is not a key.
func describeNonKeyJSON(text string) string {
	var content any
	err := json.Unmarshal([]byte(text), &content)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return describeNonJSON(text, int(syntax.Offset)-1)
	}
	fields, isObject := content.(map[string]any)
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(json.Unmarshal([]byte(text), &clients.ServiceAccountKeyResponse{}), &typed) && typed.Field != "":
		return "has a value of the wrong type in " + typed.Field
	case isObject && fields["credentials"] != nil:
		return "has a field that cannot be read: id and credentials.sub must be UUIDs, createdAt and validUntil dates"
	case isObject && fields["privateKey"] != nil:
		return `is only the "credentials" of a key`
	case holdsKey(content):
		return "is nested inside another object"
	default:
		return `has no "credentials"`
	}
}

// describeNonJSON describes a text that is valid JSON up to the byte at the offset. Line numbers count from
// the start of the key, which stands inside a manifest.
func describeNonJSON(text string, offset int) string {
	before, wrong := text[:offset], text[offset]
	value := strings.TrimRight(before, " \t\r\n")
	line := func(text string) int { return strings.Count(text, "\n") + 1 }
	switch {
	case errors.Is(json.NewDecoder(strings.NewReader(text)).Decode(new(any)), io.ErrUnexpectedEOF):
		return "is truncated JSON"
	case strings.HasSuffix(value, ",") && (wrong == '}' || wrong == ']'):
		return fmt.Sprintf("is not JSON: there is a trailing comma at the end of its line %d", line(value))
	case wrong == '\n', wrong == '\r':
		return fmt.Sprintf(
			`is not JSON: a string is cut off at the end of its line %d (the private key's line breaks must be \n)`,
			line(before))
	default:
		return fmt.Sprintf("is not JSON: syntax error in its line %d", line(before))
	}
}

// holdsKey reports whether a JSON value, or a string in it, contains a key.
func holdsKey(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		_, isKey := value["credentials"].(map[string]any)
		return isKey || slices.ContainsFunc(slices.Collect(maps.Values(value)), holdsKey)
	case []any:
		return slices.ContainsFunc(value, holdsKey)
	case string:
		var inner map[string]any
		return json.Unmarshal([]byte(value), &inner) == nil && holdsKey(inner)
	default:
		return false
	}
}

var (
	// errPrivateKey means that the private key cannot be read.
	errPrivateKey = privateKeyError("cannot be used: must be an RSA key in PEM form" + orNewKey)
	// errCannotSign means that the private key can be read but cannot sign.
	errCannotSign = privateKeyError("cannot sign" + orNewKey)
)

const orNewKey = ": use the private key that belongs to this service-account key, or create a new key"

func privateKeyError(text string) error {
	return &CredentialsError{Reason: "the service-account key's credentials.privateKey " + text}
}

// checkPEM returns an error unless the text is a private key in PEM form. The error names the
// problem.
func checkPEM(text string) error {
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil && strings.Contains(text, "-----BEGIN") && strings.Contains(text, `\n`):
		return privateKeyError(`has its line breaks escaped twice: must be \n in the JSON, not \\n`)
	case block == nil && strings.Contains(text, "-----BEGIN"):
		return privateKeyError("is damaged PEM: it needs its line breaks, its first and last line, " +
			"and intact base64 between them")
	case block == nil:
		return errPrivateKey
	case strings.Contains(block.Type, "ENCRYPTED"), block.Headers["DEK-Info"] != "":
		return privateKeyError("is encrypted: must be an RSA key in PEM form without a passphrase")
	case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return privateKeyError("is PEM of another type: must be the RSA private key")
	}
	return nil
}

// keyExchange returns an exchange that uses the SDK's key flow once. Each exchange has a new flow,
// because a second call of a flow panics on a token without expiry (SDK core v0.27.1,
// clients/auth_flow.go). A key that cannot work is refused at once.
func keyExchange(config Config, keyJSON string) (exchange, error) {
	key, err := parseKey(keyJSON)
	if err != nil {
		return nil, err
	}
	tokenURL, err := config.tokenEndpoint(key.Credentials.TokenEndpoint)
	if err != nil {
		return nil, err
	}
	if err := checkPEM(privateKey(key)); err != nil {
		return nil, err
	}
	newFlow := func(transport http.RoundTripper) (*clients.KeyFlow, error) {
		flow := &clients.KeyFlow{}
		err := flow.Init(&clients.KeyFlowConfig{
			ServiceAccountKey: key,
			PrivateKey:        *key.Credentials.PrivateKey,
			TokenUrl:          tokenURL,
			AuthHTTPClient:    &http.Client{Transport: transport, CheckRedirect: refuseRedirects},
		})
		if err != nil {
			return nil, errPrivateKey
		}
		return flow, nil
	}
	if _, err := newFlow(nil); err != nil {
		return nil, err
	}
	return func(attempt *tokenAttempt) (string, error) {
		flow, err := newFlow(attempt)
		if err != nil {
			return "", err
		}
		token, err := accessToken(flow)
		if err != nil && !attempt.sent {
			return "", errCannotSign
		}
		return token, err
	}, nil
}
