// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
)

const (
	// maxKey is the largest service-account key, in bytes. One of 8,192 bits has 9,000.
	maxKey = 16 << 10
	// minModulus and maxModulus are the sizes of RSA keys, in bits. Signing takes the cube of
	// the size: 0.2 s at most, but 21 s with 44,910 bits.
	minModulus = 2048
	maxModulus = 8192
	// keyNumbers is how many numbers an RSA key with two primes has. To find out those that are
	// not there takes 0.15 s in every call, to sign with more primes 0.6 s.
	keyNumbers = 9
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
	endpoint, err := c.tokenEndpoint(parsed.Credentials.TokenEndpoint)
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

// parseKey reads a service-account key and refuses one that cannot work. It does not look at
// the private key. No error repeats anything of the key.
func parseKey(keyJSON string) (*clients.ServiceAccountKeyResponse, error) {
	if keyJSON == "" {
		return nil, &CredentialsError{Reason: "the service-account key is missing"}
	}
	if len(keyJSON) > maxKey {
		return nil, &CredentialsError{Reason: fmt.Sprintf("the service-account key has %d bytes, must have at most %d", len(keyJSON), maxKey)}
	}
	key := &clients.ServiceAccountKeyResponse{}
	if err := json.Unmarshal([]byte(keyJSON), key); err != nil {
		return nil, &CredentialsError{Reason: "the service-account key is not the JSON that STACKIT hands out for a key"}
	}
	if key.Credentials == nil {
		return nil, &CredentialsError{Reason: `the service-account key has no "credentials"`}
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
		return nil, &CredentialsError{Reason: "the service-account key lacks " + strings.Join(missing, ", ")}
	}
	return key, nil
}

func privateKey(key *clients.ServiceAccountKeyResponse) string {
	if key.Credentials.PrivateKey == nil {
		return ""
	}
	return *key.Credentials.PrivateKey
}

// errPrivateKey says that a private key is none that a session can sign with.
var errPrivateKey = &CredentialsError{Reason: "the service-account key's credentials.privateKey cannot be used, must be an RSA key in PEM form"}

// keyExchange uses the SDK's key flow as a one-shot token source: a new flow each
// time, because a flow that is asked twice panics on a token without expiry
// (SDK core v0.27.1, clients/auth_flow.go). It refuses a key that cannot work.
func keyExchange(config Config, keyJSON string) (exchange, error) {
	key, err := parseKey(keyJSON)
	if err != nil {
		return nil, err
	}
	tokenURL, err := config.tokenEndpoint(key.Credentials.TokenEndpoint)
	if err := cmp.Or(err, checkPrivateKey(privateKey(key))); err != nil {
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
	return func(transport http.RoundTripper) (string, error) {
		flow, err := newFlow(transport)
		if err != nil {
			return "", err
		}
		return flow.GetAccessToken()
	}, nil
}

// checkPrivateKey refuses a private key of a size that would burn time: whoever may write a
// Secret must not stop the machines of all others. It only measures the key's numbers: to
// parse them takes that time already.
func checkPrivateKey(text string) error {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return errPrivateKey
	}
	sizes, err := numberSizes(block.Bytes)
	if err != nil {
		return errPrivateKey
	}
	for i, size := range sizes {
		if i == 1 && (size < minModulus || size > maxModulus) {
			return &CredentialsError{Reason: fmt.Sprintf("the service-account key's credentials.privateKey has an RSA modulus of %d bits, must have %d to %d",
				size, minModulus, maxModulus)}
		}
		if size > maxModulus {
			return &CredentialsError{Reason: fmt.Sprintf("the service-account key's credentials.privateKey has a number of %d bits, must have at most %d",
				size, maxModulus)}
		}
	}
	if len(sizes) != keyNumbers {
		return &CredentialsError{Reason: fmt.Sprintf("the service-account key's credentials.privateKey has %d numbers, must have the %d of an RSA key with two primes",
			len(sizes), keyNumbers)}
	}
	return nil
}

// numberSizes returns how many bits each number of an RSA key in PKCS #1 or PKCS #8 has: the
// first one is its version, the second its modulus.
func numberSizes(der []byte) ([]int, error) {
	var wrapped struct {
		Version   int
		Algorithm struct{ ID asn1.ObjectIdentifier }
		Key       []byte
	}
	if _, err := asn1.Unmarshal(der, &wrapped); err == nil {
		der = wrapped.Key
	}
	var numbers []asn1.RawValue
	if _, err := asn1.Unmarshal(der, &numbers); err != nil {
		return nil, err
	}
	if len(numbers) < 2 || numbers[1].Tag != asn1.TagInteger {
		return nil, errors.New("it has no modulus")
	}
	sizes := make([]int, len(numbers))
	for i, number := range numbers {
		sizes[i] = new(big.Int).SetBytes(number.Bytes).BitLen()
	}
	return sizes, nil
}
