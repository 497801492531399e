// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Where the API takes no slashes in the labels of NICs and volumes, they are marked without.
func TestTagWithoutSlashes(t *testing.T) {
	const run = "20261123-071100-abcd"
	var patched []map[string]string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Labels map[string]string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/token":
			_, _ = w.Write([]byte(`{"access_token":"eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9."}`))
		case r.Method != http.MethodPatch:
			_, _ = w.Write([]byte(`{"id":"x"}`))
		default:
			if body.Labels[mark.ClusterLabel] != "" {
				w.WriteHeader(http.StatusBadRequest)
			}
			patched = append(patched, body.Labels)
		}
	}))
	defer server.Close()
	key, err := iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(settings.Settings{ProjectID: "p", Region: "eu01", NetworkID: "n", Key: key, TokenURL: server.URL + "/token"}, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	marked := &api.Server{Name: mark.Name(run, "a"), Labels: api.Labels{}}
	for label, value := range mark.Labels(run, "a", "c") {
		marked.Labels[label] = &value
	}
	marked.BootVolume.ID = "x"
	took, err := Sweeper{API: client, Known: mark.NewKnown()}.Tag(t.Context(), marked)
	if err != nil || took["volume"] != "keys with dots and a slash: 400, without: 200" || len(patched) != 2 || patched[1]["kubernetes-io-cluster"] != mark.Cluster(run) {
		t.Errorf("%v %v %v", took, err, patched)
	}
}
