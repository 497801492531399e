// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const keyAudience = "https://stackit-service-account-prod.apps.01.cf.eu01.stackit.cloud"

// serviceAccountKey is the file that a user downloads from STACKIT.
type serviceAccountKey struct {
	ID           string         `json:"id"`
	PublicKey    string         `json:"publicKey"`
	CreatedAt    time.Time      `json:"createdAt"`
	KeyType      string         `json:"keyType"`
	KeyOrigin    string         `json:"keyOrigin"`
	KeyAlgorithm string         `json:"keyAlgorithm"`
	Active       bool           `json:"active"`
	Credentials  keyCredentials `json:"credentials"`
}

type keyCredentials struct {
	KID        string `json:"kid"`
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Audience   string `json:"aud"`
	PrivateKey string `json:"privateKey"`
}

// registeredKey is what the cloud remembers of a key.
type registeredKey struct {
	kid, email, subject, projectID string
	public                         *rsa.PublicKey
}

// NewServiceAccountKey makes a service account with access to the project and
// returns its key file as JSON, private key included. It names no token
// endpoint: the client has to be told this cloud's /token.
func (c *Cloud) NewServiceAccountKey(projectID string) ([]byte, error) {
	if !c.hasProject(projectID) {
		return nil, fmt.Errorf("no project %s", projectID)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("generate the key: %w", err)
	}
	publicPEM, privatePEM, err := encodeKeyPair(private)
	if err != nil {
		return nil, err
	}
	registered := registeredKey{
		kid:       uuid.NewString(),
		email:     "mock-" + uuid.NewString()[:8] + "@sa.stackit.cloud",
		subject:   uuid.NewString(),
		projectID: projectID,
		public:    &private.PublicKey,
	}
	key, err := json.MarshalIndent(serviceAccountKey{
		ID:           registered.kid,
		PublicKey:    publicPEM,
		CreatedAt:    c.clock.Now().UTC(),
		KeyType:      "USER_MANAGED",
		KeyOrigin:    "GENERATED",
		KeyAlgorithm: "RSA_2048",
		Active:       true,
		Credentials: keyCredentials{
			KID: registered.kid, Issuer: registered.email, Subject: registered.subject,
			Audience: keyAudience, PrivateKey: privatePEM,
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	c.tokens.register(registered)
	return key, nil
}

// RevokeServiceAccountKey makes a key from NewServiceAccountKey and every token
// it got worthless.
func (c *Cloud) RevokeServiceAccountKey(keyJSON []byte) error {
	var key serviceAccountKey
	if err := json.Unmarshal(keyJSON, &key); err != nil {
		return fmt.Errorf("decode the key: %w", err)
	}
	if !c.tokens.revoke(key.Credentials.KID) {
		return errors.New("the key is not registered with this cloud")
	}
	return nil
}

func encodeKeyPair(private *rsa.PrivateKey) (publicPEM, privatePEM string, err error) {
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return "", "", fmt.Errorf("encode the public key: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", fmt.Errorf("encode the private key: %w", err)
	}
	publicPEM = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	privatePEM = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return publicPEM, privatePEM, nil
}
