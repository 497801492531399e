// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// RegisterServiceAccountKey gives a key from another cloud's
// NewServiceAccountKey access to the project in this one. Making a key takes long;
// who makes many clouds, makes the keys once.
func (c *Cloud) RegisterServiceAccountKey(projectID string, keyJSON []byte) error {
	if !c.hasProject(projectID) {
		return fmt.Errorf("no project %s", projectID)
	}
	var key serviceAccountKey
	if err := json.Unmarshal(keyJSON, &key); err != nil {
		return fmt.Errorf("decode the key: %w", err)
	}
	block, _ := pem.Decode([]byte(key.PublicKey))
	if block == nil {
		return errors.New("the key has no public key in PEM form")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("parse the public key: %w", err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("the public key is a %T, not an RSA key", parsed)
	}
	c.tokens.register(registeredKey{
		kid: key.Credentials.KID, email: key.Credentials.Issuer, subject: key.Credentials.Subject,
		projectID: projectID, public: public,
	})
	return nil
}
