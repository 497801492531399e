// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"bytes"
	"crypto/md5" //nolint:gosec // fingerprints of SSH keys are MD5
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

type keypairView struct {
	Name        string            `json:"name"`
	PublicKey   string            `json:"publicKey"`
	Fingerprint string            `json:"fingerprint"`
	Labels      map[string]string `json:"labels"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

func showKeypair(k *Keypair) keypairView {
	return keypairView{
		Name: k.Name, PublicKey: k.PublicKey, Fingerprint: k.Fingerprint, Labels: orEmptyMap(k.Labels),
		CreatedAt: k.CreatedAt.UTC(), UpdatedAt: k.UpdatedAt.UTC(),
	}
}

func (c *Cloud) findKeypair(name string) (*Keypair, bool) { return c.keypairs.get(name) }

// withKeypair runs f on the key pair that the path names.
func (c *Cloud) withKeypair(r *request, f func(k *Keypair, now time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		keypair, ok := c.findKeypair(r.vars["keypairName"])
		if !ok {
			err = notFound("keypair")
			return
		}
		err = f(keypair, now)
	})
	return err
}

func (c *Cloud) listKeypairs(r *request) (any, *apiError) {
	return listed(c, r, &c.keypairs, func(k *Keypair, _ time.Time) (any, map[string]string, bool) {
		return showKeypair(k), k.Labels, true
	})
}

func (c *Cloud) getKeypair(r *request) (view any, err *apiError) {
	err = c.withKeypair(r, func(k *Keypair, _ time.Time) *apiError {
		view = showKeypair(k)
		return nil
	})
	return view, err
}

// createKeypair generates a name if none is given.
func (c *Cloud) createKeypair(r *request) (view any, err *apiError) {
	var payload struct {
		Name      string         `json:"name"`
		PublicKey string         `json:"publicKey"`
		Labels    map[string]any `json:"labels"`
	}
	if err := r.decode("CreateKeyPairPayload", schema.CreateKeypair, &payload); err != nil {
		return nil, err
	}
	sum, valid := fingerprint(payload.PublicKey)
	if !valid {
		if err := c.unconfirmed(badRequest("Keypair data is invalid: failed to generate fingerprint")); err != nil {
			return nil, err
		}
	}
	labels, err := mergeLabels(nil, payload.Labels)
	if err != nil {
		return nil, err
	}
	if payload.Name == "" {
		payload.Name = "keypair-" + c.ids.uuid()[:8]
	}
	c.locked(func(now time.Time) {
		if _, taken := c.keypairs.get(payload.Name); taken {
			// Source: the document: CreateKeyPair's description; 409 of CreateKeyPair.
			err = conflict()
			return
		}
		keypair := &Keypair{
			Name: payload.Name, PublicKey: payload.PublicKey, Fingerprint: sum, Labels: labels, CreatedAt: now, UpdatedAt: now,
		}
		c.keypairs.put(keypair.Name, keypair)
		view = showKeypair(keypair)
	})
	return view, err
}

func (c *Cloud) updateKeypair(r *request) (view any, err *apiError) {
	var payload struct {
		Labels map[string]any `json:"labels"`
	}
	if err := r.decode("UpdateKeyPairPayload", schema.UpdateKeypair, &payload); err != nil {
		return nil, err
	}
	err = c.withKeypair(r, func(k *Keypair, now time.Time) *apiError {
		labels, err := mergeLabels(k.Labels, payload.Labels)
		if err != nil {
			return err
		}
		k.Labels, k.UpdatedAt = labels, now
		view = showKeypair(k)
		return nil
	})
	return view, err
}

// deleteKeypair also deletes a key pair of existing servers: only CreateServer needs it.
func (c *Cloud) deleteKeypair(r *request) (any, *apiError) {
	return nil, c.withKeypair(r, func(k *Keypair, _ time.Time) *apiError {
		c.keypairs.remove(k.Name)
		return nil
	})
}

// fingerprint is the MD5 of the key in an authorized_keys line. valid is false if the key
// is not of the type that the line names.
func fingerprint(line string) (text string, valid bool) {
	fields := append(strings.Fields(line), "", "")
	kind := fields[0]
	key, err := base64.StdEncoding.DecodeString(fields[1])
	sum := md5.Sum(key) //nolint:gosec // as above
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = hex.EncodeToString([]byte{b})
	}
	// A key begins with its type, after four bytes of the type's length.
	begin := binary.BigEndian.AppendUint32(nil, uint32(len(kind))) //nolint:gosec // a few letters
	return strings.Join(pairs, ":"), err == nil && bytes.HasPrefix(key, append(begin, kind...))
}
