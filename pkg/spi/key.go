// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"crypto/sha256"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
)

const (
	// maxKey is the largest service-account key, in bytes. One of 4,096 bits has 5,000.
	maxKey = 16 << 10
	// minModulus and maxModulus are the sizes of RSA keys, in bits. A signature takes 5 ms with
	// 4,096 bits, 70 ms with factors of unequal size, and the cube of the size.
	minModulus = 2048
	maxModulus = 4096
	// keyPause is the time until a key that could not sign is tried again.
	keyPause = 30 * time.Second
)

// Key is what a service-account key says of itself, without what is secret.
type Key struct {
	// ID is the key's UUID, Issuer the mail address of its service account.
	ID, Issuer string
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
	key := &Key{ID: parsed.ID.String(), Issuer: parsed.Credentials.Iss, TokenEndpoint: endpoint}
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
		return nil, &CredentialsError{Reason: fmt.Sprintf(
			"the service-account key has %d bytes, must have at most %d", len(keyJSON), maxKey)}
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

var (
	// errPrivateKey says that a private key is none that a session can sign with.
	errPrivateKey = &CredentialsError{Reason: "the service-account key's credentials.privateKey cannot be used, " +
		"must be an RSA key in PEM form"}
	// errCannotSign says that a private key can be read, and signed nothing.
	errCannotSign = &CredentialsError{Reason: "the service-account key's credentials.privateKey cannot sign: " +
		"its numbers do not belong together"}
)

// keyExchange uses the SDK's key flow as a one-shot token source: a new flow each
// time, because a flow that is asked twice panics on a token without expiry
// (SDK core v0.27.1, clients/auth_flow.go). It refuses a key that cannot work.
func keyExchange(config Config, keyJSON string, signer *signer) (exchange, error) {
	key, err := parseKey(keyJSON)
	if err != nil {
		return nil, err
	}
	tokenURL, err := config.tokenEndpoint(key.Credentials.TokenEndpoint)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(privateKey(key)))
	if block == nil {
		return nil, errPrivateKey
	}
	if err := checkNumbers(block.Bytes); err != nil {
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
	hash := sha256.Sum256(block.Bytes)
	return func(transport http.RoundTripper, isAbandoned func() bool) (string, error) {
		return signer.exchange(hash, transport, isAbandoned, func(transport http.RoundTripper) (string, error) {
			flow, err := newFlow(transport)
			if err != nil {
				return "", err
			}
			return accessToken(flow)
		})
	}, nil
}

// checkNumbers refuses a private key that would burn time: whoever may write a Secret must not
// stop the machines of all others. It reads the key's numbers, in PKCS #1 or PKCS #8, before
// the key is parsed: crypto/x509 works out the last three where they are missing, which takes
// minutes if a factor has 40,000 bits, and computes with what is larger than the modulus before
// it compares the two.
func checkNumbers(der []byte) error {
	var wrapped struct {
		Version   int
		Algorithm struct{ ID asn1.ObjectIdentifier }
		Key       []byte
	}
	if _, err := asn1.Unmarshal(der, &wrapped); err == nil {
		der = wrapped.Key
	}
	var key struct {
		Version                     int
		N, E, D, P, Q, Dp, Dq, Qinv *big.Int
	}
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return errPrivateKey
	}
	size := key.N.BitLen()
	if size < minModulus || size > maxModulus {
		return &CredentialsError{Reason: fmt.Sprintf(
			"the service-account key's credentials.privateKey has an RSA modulus of %d bits, must have %d to %d",
			size, minModulus, maxModulus)}
	}
	for _, number := range []*big.Int{key.E, key.D, key.P, key.Q, key.Dp, key.Dq, key.Qinv} {
		if number.BitLen() > size {
			return errPrivateKey
		}
	}
	return nil
}

// signer lets keys be read, and sign, one after the other: of the two cores that the sidecar may
// have, the keys of all Secrets together take one at most. It is a PluginSPIImpl's, of which a
// process has one.
type signer struct {
	clock clock.PassiveClock
	// turn holds the signature, or the session, that is being made.
	turn chan struct{}
	// unable is when each key last could not sign, by its hash.
	unable *recent.Map[[sha256.Size]byte, time.Time]
}

func newSigner(clock clock.PassiveClock) *signer {
	return &signer{clock: clock, turn: make(chan struct{}, 1),
		unable: recent.New[[sha256.Size]byte, time.Time](clock, keyPause)}
}

// exchange lets fetch sign an assertion with a key and send it by the transport that it is
// given. The turn ends when the request reaches that transport: the SDK's flow signs and sends in
// one call, and nobody else's signature waits for an answer. An error before that is the key's.
func (s *signer) exchange(key [sha256.Size]byte, transport http.RoundTripper, isAbandoned func() bool,
	fetch func(http.RoundTripper) (string, error)) (string, error) {
	s.turn <- struct{}{}
	request := &signing{next: transport, turn: s.turn}
	defer request.endTurn()
	if isAbandoned() {
		return "", errAbandoned
	}
	if failed, ok := s.unable.Lookup(key); ok && s.clock.Since(failed) < keyPause {
		return "", errCannotSign
	}
	token, err := fetch(request)
	if err != nil && !request.isSigned {
		s.unable.Set(key, s.clock.Now())
		return "", errCannotSign
	}
	return token, err
}

// signing is the transport of one assertion. It is used by one goroutine.
type signing struct {
	next     http.RoundTripper
	turn     chan struct{}
	isSigned bool
}

// RoundTrip implements http.RoundTripper.
func (s *signing) RoundTrip(request *http.Request) (*http.Response, error) {
	s.endTurn()
	s.isSigned = true
	return s.next.RoundTrip(request)
}

func (s *signing) endTurn() {
	if !s.isSigned {
		<-s.turn
	}
}
