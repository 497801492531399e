// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
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
	client, err := api.New(someSettings(t, server.URL), server.URL)
	if err != nil {
		t.Fatal(err)
	}
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
