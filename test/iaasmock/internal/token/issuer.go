// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package token is the mock's token endpoint: it registers service-account keys, exchanges
// signed assertions and trusted workloads' tokens for access tokens, and finds the project
// of an access token.
package token

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"k8s.io/utils/clock"
)

// Issuer issues access tokens for its registered service accounts, and checks them. It is
// safe for concurrent use.
type Issuer struct {
	clock    clock.PassiveClock
	lifetime time.Duration
	// secret signs access tokens. Each Issuer has its own, so that tokens of another Issuer
	// are invalid.
	secret []byte

	mu   sync.RWMutex
	keys map[string]registered
	// federated are the service accounts without a key, by their email address.
	federated map[string]federated
}

// NewIssuer returns an Issuer whose tokens are valid for lifetime.
func NewIssuer(c clock.PassiveClock, lifetime time.Duration) *Issuer {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails, by its documentation
	return &Issuer{clock: c, lifetime: lifetime, secret: secret, keys: map[string]registered{},
		federated: map[string]federated{}}
}

// NewKey creates a service account with access to the project and returns its key file as
// JSON, private key included.
func (i *Issuer) NewKey(projectID string, form KeyForm) ([]byte, error) {
	key, file, err := newKey(projectID, form, i.clock.Now())
	if err != nil {
		return nil, err
	}
	i.add(key)
	return file, nil
}

// RegisterKey grants a key from another Issuer's NewKey access to the project.
func (i *Issuer) RegisterKey(projectID string, keyJSON []byte) error {
	key, err := readKey(projectID, keyJSON)
	if err != nil {
		return err
	}
	i.add(key)
	return nil
}

// RevokeKey invalidates a key and every access token issued for it.
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

// NewFederatedAccount creates a service account with access to the project, without a key, and
// returns its email address.
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

// account is a service account.
type account struct{ email, subject, projectID string }

func newAccount(projectID string) account {
	return account{email: "mock-" + uuid.NewString()[:8] + "@sa.stackit.cloud", subject: uuid.NewString(),
		projectID: projectID}
}

// accessClaims are the claims of a STACKIT access token that clients read.
type accessClaims struct {
	jwt.RegisteredClaims
	Email     string `json:"email"`
	ProjectID string `json:"stackit/project/project.id"`
	// KeyID is the ID of the service-account key; "" for a workload identity.
	KeyID string `json:"kid,omitempty"`
	// ValidUntil is when the mock stops accepting the token, in Unix seconds.
	ValidUntil int64 `json:"validUntil"`
}

// Flaw makes an issued token deliberately invalid or unusual, for tests.
type Flaw struct {
	// Skew is how far the issuer's clock is ahead of the client's (negative: behind).
	Skew time.Duration
	// WithoutExpiry omits the claim exp.
	WithoutExpiry bool
}

func (i *Issuer) issue(account account, keyID string, flaw Flaw) (string, error) {
	now := i.clock.Now()
	end, dated := now.Add(i.lifetime), now.Add(flaw.Skew)
	claims := accessClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   account.subject,
			IssuedAt:  jwt.NewNumericDate(dated),
			ExpiresAt: jwt.NewNumericDate(dated.Add(i.lifetime)),
			ID:        uuid.NewString(),
		},
		Email: account.email, ProjectID: account.projectID, KeyID: keyID, ValidUntil: end.Unix(),
	}
	if flaw.WithoutExpiry {
		claims.ExpiresAt = nil
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(i.secret)
}

// Authenticate returns the project of the request's bearer token; ok is false without a valid token,
// or if its key was revoked. It checks the issuer's own expiry instead of exp, which a Flaw may have
// changed.
func (i *Issuer) Authenticate(r *http.Request) (projectID string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	var claims accessClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return i.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	if err != nil || !i.clock.Now().Before(time.Unix(claims.ValidUntil, 0)) {
		return "", false
	}
	if claims.KeyID == "" {
		return claims.ProjectID, true
	}
	key, ok := i.key(claims.KeyID)
	return key.projectID, ok
}

// KeyForm is the format of a key file, named after the year in which STACKIT issued such files.
type KeyForm string

const (
	// KeyForm2026 contains the URL of a token endpoint and the ID of the service account's project.
	KeyForm2026 KeyForm = "2026"
	// KeyForm2025 contains neither a token endpoint nor a project.
	KeyForm2025 KeyForm = "2025"
)

// keyFile is the file that a user downloads from STACKIT.
type keyFile struct {
	ID           string         `json:"id"`
	ProjectID    string         `json:"projectId,omitempty"`
	PublicKey    string         `json:"publicKey"`
	CreatedAt    time.Time      `json:"createdAt"`
	KeyType      string         `json:"keyType"`
	KeyOrigin    string         `json:"keyOrigin"`
	KeyAlgorithm string         `json:"keyAlgorithm"`
	Active       bool           `json:"active"`
	Credentials  keyCredentials `json:"credentials"`
}

type keyCredentials struct {
	KID           string `json:"kid"`
	Issuer        string `json:"iss"`
	Subject       string `json:"sub"`
	Audience      string `json:"aud"`
	PrivateKey    string `json:"privateKey"`
	TokenEndpoint string `json:"tokenEndpoint,omitempty"`
}

// registered is a key that the issuer accepts.
type registered struct {
	account
	kid    string
	public *rsa.PublicKey
}

// newKey creates a service account with a key, and its key file as JSON, private key included.
func newKey(projectID string, form KeyForm, now time.Time) (registered, []byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return registered{}, nil, fmt.Errorf("generate the key: %w", err)
	}
	encoded := func(kind string, der []byte, err error) string {
		if err != nil {
			panic("token: " + err.Error()) // never, for an RSA key
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	publicPEM := encoded("PUBLIC KEY", public, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	privatePEM := encoded("PRIVATE KEY", secret, err)
	key := registered{account: newAccount(projectID), kid: uuid.NewString(), public: &private.PublicKey}
	content := keyFile{
		ID: key.kid, PublicKey: publicPEM, CreatedAt: now.UTC(),
		KeyType: "USER_MANAGED", KeyOrigin: "GENERATED", KeyAlgorithm: "RSA_2048", Active: true,
		Credentials: keyCredentials{
			KID: key.kid, Issuer: key.email, Subject: key.subject, PrivateKey: privatePEM,
			Audience: "https://stackit-service-account-prod.apps.01.cf.eu01.stackit.cloud",
		},
	}
	if form == KeyForm2026 {
		content.ProjectID = projectID
		content.Credentials.Audience = "https://accounts.stackit.cloud"
		content.Credentials.TokenEndpoint = "https://accounts.stackit.cloud/oauth/v2/token"
	}
	file, err := json.MarshalIndent(content, "", "  ")
	return key, file, err
}

// readKey returns the key in a key file, for an account with access to the project.
func readKey(projectID string, keyJSON []byte) (registered, error) {
	var file keyFile
	if err := json.Unmarshal(keyJSON, &file); err != nil {
		return registered{}, fmt.Errorf("decode the key: %w", err)
	}
	public, err := jwt.ParseRSAPublicKeyFromPEM([]byte(file.PublicKey))
	if err != nil {
		return registered{}, fmt.Errorf("parse the public key: %w", err)
	}
	return registered{
		account: account{email: file.Credentials.Issuer, subject: file.Credentials.Subject, projectID: projectID},
		kid:     file.Credentials.KID, public: public,
	}, nil
}
