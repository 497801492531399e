// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Gardener mounts a CloudProfile's CA into the folder of the system's roots. Other
// systems than Linux do not let a variable name that folder.
func TestACAOfTheSystemIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(answerEmptyList))
	defer server.Close()
	roots := t.TempDir()
	if err := listInChild(t, server.URL, "SSL_CERT_DIR="+roots); err == nil {
		t.Error("a server whose CA nobody knows is trusted")
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(roots, "cloudprofile-ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := listInChild(t, server.URL, "SSL_CERT_DIR="+roots); err != nil {
		t.Errorf("a server whose CA is installed is not trusted: %v", err)
	}
}
