// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// jwk is a public key as an issuer shows it: of type RSA with n and e, or EC with crv, x and y
// (RFC 7518, 6).
type jwk struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	N     number `json:"n"`
	E     number `json:"e"`
	Curve string `json:"crv"`
	X     number `json:"x"`
	Y     number `json:"y"`
}

// number is an unsigned one in big-endian bytes, encoded as base64url.
type number []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *number) UnmarshalText(text []byte) (err error) {
	*n, err = base64.RawURLEncoding.DecodeString(string(text))
	return err
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// publicKeys returns the keys of a JWKS by their IDs.
func publicKeys(jwks []byte) (map[string]any, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("there are no keys")
	}
	keys := map[string]any{}
	for _, key := range set.Keys {
		var err error
		if keys[key.ID], err = key.public(); err != nil {
			return nil, fmt.Errorf("key %q: %w", key.ID, err)
		}
	}
	return keys, nil
}

func (k *jwk) public() (any, error) {
	switch k.Type {
	case "RSA":
		modulus, exponent := new(big.Int).SetBytes(k.N), new(big.Int).SetBytes(k.E)
		if modulus.BitLen() < 1024 || !exponent.IsInt64() || exponent.Int64() < 3 {
			return nil, errors.New("n or e is missing or too small")
		}
		return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
	case "EC":
		curve, ok := curves[k.Curve]
		if !ok {
			return nil, fmt.Errorf("unknown crv %q", k.Curve)
		}
		return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, k.X, k.Y))
	default:
		return nil, fmt.Errorf("unknown kty %q", k.Type)
	}
}
