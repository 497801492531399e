// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

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

// keyFile is the file that a user downloads from STACKIT.
type keyFile struct {
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

// registered is a key as the issuer knows it.
type registered struct {
	account
	kid    string
	public *rsa.PublicKey
}

// newKey makes a service account with a key, and its key file as JSON, private key included.
func newKey(projectID string, now time.Time) (registered, []byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return registered{}, nil, fmt.Errorf("generate the key: %w", err)
	}
	publicPEM, privatePEM, err := encodeKeyPair(private)
	if err != nil {
		return registered{}, nil, err
	}
	key := registered{account: newAccount(projectID), kid: uuid.NewString(), public: &private.PublicKey}
	file, err := json.MarshalIndent(keyFile{
		ID:           key.kid,
		PublicKey:    publicPEM,
		CreatedAt:    now.UTC(),
		KeyType:      "USER_MANAGED",
		KeyOrigin:    "GENERATED",
		KeyAlgorithm: "RSA_2048",
		Active:       true,
		Credentials: keyCredentials{
			KID: key.kid, Issuer: key.email, Subject: key.subject,
			Audience: keyAudience, PrivateKey: privatePEM,
		},
	}, "", "  ")
	if err != nil {
		return registered{}, nil, fmt.Errorf("encode the key: %w", err)
	}
	return key, file, nil
}

// readKey returns the key in a key file, of an account with access to the project.
func readKey(projectID string, keyJSON []byte) (registered, error) {
	var file keyFile
	if err := json.Unmarshal(keyJSON, &file); err != nil {
		return registered{}, fmt.Errorf("decode the key: %w", err)
	}
	block, _ := pem.Decode([]byte(file.PublicKey))
	if block == nil {
		return registered{}, errors.New("the key has no public key in PEM form")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return registered{}, fmt.Errorf("parse the public key: %w", err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return registered{}, fmt.Errorf("the public key is a %T, not an RSA key", parsed)
	}
	return registered{
		account: account{email: file.Credentials.Issuer, subject: file.Credentials.Subject, projectID: projectID},
		kid:     file.Credentials.KID, public: public,
	}, nil
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
