// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
)

// A label is taken away that was put there before.
func TestPatchLabels(t *testing.T) {
	RegisterTestingT(t)
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			sent = append(sent, string(body))
		}
		_, _ = w.Write([]byte(`{"id":"` + nobody + `"}`))
	}))
	defer server.Close()
	client := newClient(t, server.URL)
	for range 10 {
		s := &suite{api: client}
		s.patchLabels(t.Context(), nobody, nil)
	}
	for i, body := range sent {
		if removes := strings.Contains(body, "null"); removes != (i%2 == 1) {
			t.Fatalf("sent: %q", sent)
		}
	}
	if len(sent) != 20 {
		t.Errorf("%d PATCHes", len(sent))
	}
}

// newClient returns a client whose calls go to the URL, with a token that anything is.
func newClient(t *testing.T, target string) *api.Client {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."}`))
	}))
	t.Cleanup(tokens.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := api.New(settings.Settings{ProjectID: nobody, Region: "eu01", NetworkID: nobody, Email: "a@example.com", TokenFile: file, IDPURL: tokens.URL}, target)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
