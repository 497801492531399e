// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

type keypairView struct {
	Name        string            `json:"name"`
	PublicKey   string            `json:"publicKey"`
	Fingerprint string            `json:"fingerprint"`
	Labels      map[string]string `json:"labels"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

func showKeypair(k *Keypair, _ time.Time) keypairView {
	return keypairView{
		Name: k.Name, PublicKey: k.PublicKey, Fingerprint: k.Fingerprint, Labels: orEmptyMap(k.Labels),
		CreatedAt: k.CreatedAt.UTC(), UpdatedAt: k.UpdatedAt.UTC(),
	}
}

func (c *Cloud) listKeypairs(r *request) (any, *apiError) {
	return listed(c, r, &c.keypairs, showKeypair)
}

func (c *Cloud) getKeypair(r *request) (any, *apiError) {
	return shown(c, r, &c.keypairs, namedKeypair, showKeypair)
}
