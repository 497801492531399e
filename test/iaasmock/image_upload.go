// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"crypto/sha512"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"
)

// uploadPath leads to what an uploadUrl names. It is outside the API: the cloud
// has its object storage there.
const uploadPath = "/upload/"

// uploadURL is at the host by which the client has reached the API.
func uploadURL(r *http.Request, secret string) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + uploadPath + secret
}

// serveUpload takes the content of an image, which becomes available. The mock
// counts and sums the bytes and forgets them.
func (c *Cloud) serveUpload(w http.ResponseWriter, r *http.Request) {
	secret := strings.TrimPrefix(r.URL.Path, uploadPath)
	known := false
	c.locked(func(time.Time) { _, known = c.uploads[secret] })
	if !known {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPut {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	sum := sha512.New()
	size, err := io.Copy(sum, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.locked(func(now time.Time) {
		image, still := c.uploads[secret]
		if !still { // deleted meanwhile
			return
		}
		image.Status, image.Size, image.SHA512, image.UpdatedAt = ImageAvailable, size, hex.EncodeToString(sum.Sum(nil)), now
		delete(c.uploads, secret)
	})
	w.WriteHeader(http.StatusOK)
}
