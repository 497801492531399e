// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
)

// someSettings are those of an account at this API whose token is anything.
func someSettings(t *testing.T, endpoint string) settings.Settings {
	t.Helper()
	const token = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"` + token + `"}`))
	}))
	t.Cleanup(tokens.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings.Settings{
		ProjectID: "10000000-0000-4000-8000-00000000abcd", Region: "eu01", NetworkID: nobody, Endpoint: endpoint,
		Email: "a@example.com", TokenFile: file, IDPURL: tokens.URL,
	}
}

// fakeAPI has servers and nothing else. The suite does not link the mock, in its tests either.
type fakeAPI struct {
	url string

	mu sync.Mutex
	// servers are what GET shows, by ID; stuck ones cannot be deleted.
	servers map[string]map[string]any
	stuck   map[string]bool
	// deleted are the IDs of all DELETEs.
	deleted []string
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{servers: map[string]map[string]any{}, stuck: map[string]bool{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	id := path.Base(r.URL.Path)
	server, is := f.servers[id]
	var body any = map[string]any{"items": []any{}}
	switch {
	case id == "servers":
		body = map[string]any{"items": slices.Collect(maps.Values(f.servers))}
	case id == "nics" || id == "volumes":
	case !is:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		f.deleted = append(f.deleted, id)
		if !f.stuck[id] {
			delete(f.servers, id)
		}
	default:
		body = server
	}
	_ = json.NewEncoder(w).Encode(body)
}

func someOptions(t *testing.T) Options {
	t.Helper()
	return Options{Command: os.Args[0], Settings: someSettings(t, spi.DefaultEndpoint)}
}
