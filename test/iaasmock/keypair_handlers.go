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
