// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package token is the mock's token endpoint: it knows service-account keys, exchanges
// signed assertions, and the tokens of workloads that it trusts, for access tokens, and finds
// the project of an access token.
package token

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Issuer issues access tokens for the service accounts that it knows, and checks
// them. It is safe for concurrent use.
type Issuer struct {
	clock    clock.PassiveClock
	lifetime time.Duration
	// secret signs access tokens. Each Issuer has its own, so that tokens of another one
	// are invalid.
	secret []byte

	mu   sync.RWMutex
	keys map[string]registered
	// federated are the service accounts without a key, by their mail address.
	federated map[string]federated
}

// NewIssuer returns an Issuer whose tokens are valid for lifetime.
func NewIssuer(c clock.PassiveClock, lifetime time.Duration) *Issuer {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails, by its documentation
	return &Issuer{clock: c, lifetime: lifetime, secret: secret, keys: map[string]registered{}, federated: map[string]federated{}}
}

// NewKey makes a service account with access to the project and returns its key file as
// JSON, private key included.
func (i *Issuer) NewKey(projectID string) ([]byte, error) {
	key, file, err := newKey(projectID, i.clock.Now())
	if err != nil {
		return nil, err
	}
	i.add(key)
	return file, nil
}

// RegisterKey gives the key of another issuer's NewKey access to the project.
func (i *Issuer) RegisterKey(projectID string, keyJSON []byte) error {
	key, err := readKey(projectID, keyJSON)
	if err != nil {
		return err
	}
	i.add(key)
	return nil
}

// RevokeKey makes a key, and every token it got, invalid.
func (i *Issuer) RevokeKey(keyJSON []byte) error {
	var file keyFile
	if err := json.Unmarshal(keyJSON, &file); err != nil {
		return fmt.Errorf("decode the key: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.keys[file.Credentials.KID]; !known {
		return errors.New("the key is not registered with this cloud")
	}
	delete(i.keys, file.Credentials.KID)
	return nil
}

func (i *Issuer) add(key registered) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[key.kid] = key
}

func (i *Issuer) key(kid string) (registered, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	key, ok := i.keys[kid]
	return key, ok
}

// NewFederatedAccount makes a service account with access to the project, without a key, and
// returns its mail address.
func (i *Issuer) NewFederatedAccount(projectID string, federation Federation) (string, error) {
	added, err := newFederated(projectID, federation)
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.federated[added.email] = added
	return added.email, nil
}
