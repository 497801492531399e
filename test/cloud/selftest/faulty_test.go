// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package selftest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// spoil makes an API that is wrong in one way out of the mock's, for what the mock itself cannot
// do: answer gets each answer and changes it.
func spoil(t *testing.T, m mock, answer func(r *http.Request, status int, body []byte) (int, []byte)) string {
	t.Helper()
	target, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(response *http.Response) error {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		response.StatusCode, body = answer(response.Request, response.StatusCode, body)
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
		response.ContentLength, response.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func isGetServer(r *http.Request) bool {
	return r.Method == http.MethodGet && serverPath.MatchString(r.URL.Path)
}

var serverPath = regexp.MustCompile(`/servers/[0-9a-f-]{36}$`)

// forgetRunning answers GETs of servers that run with 404, after the first.
func forgetRunning(t *testing.T, m mock) string {
	t.Helper()
	var mu sync.Mutex
	reads := map[string]bool{}
	return spoil(t, m, func(r *http.Request, status int, body []byte) (int, []byte) {
		if !isGetServer(r) || !bytes.Contains(body, []byte(`"ACTIVE"`)) {
			return status, body
		}
		mu.Lock()
		defer mu.Unlock()
		if !reads[r.URL.Path] {
			reads[r.URL.Path] = true
			return status, body
		}
		return http.StatusNotFound, []byte(`{"code":404,"msg":"server not found"}`)
	})
}

// dropLabels shows servers to GET without the driver's labels.
func dropLabels(t *testing.T, m mock) string {
	t.Helper()
	return spoil(t, m, func(r *http.Request, status int, body []byte) (int, []byte) {
		var server map[string]any
		if isGetServer(r) && json.Unmarshal(body, &server) == nil {
			delete(server, "labels")
			body, _ = json.Marshal(server)
		}
		return status, body
	})
}

// forbidDeleted answers GETs of what was deleted with 403, and once a POST with the server of
// somebody else.
func forbidDeleted(t *testing.T, m mock) string {
	t.Helper()
	makesServer(t, m, "database-of-somebody", map[string]string{})
	m.inject(t, `{"preset":"wrong-server","count":1}`)
	var mu sync.Mutex
	deleted := map[string]bool{}
	return spoil(t, m, func(r *http.Request, status int, body []byte) (int, []byte) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodDelete && status < http.StatusBadRequest {
			deleted[r.URL.Path] = true
		}
		if r.Method == http.MethodGet && deleted[r.URL.Path] && status == http.StatusNotFound {
			return http.StatusForbidden, []byte(`{"code":403,"msg":"Forbidden"}`)
		}
		return status, body
	})
}

// makes makes a thing, as somebody does, and returns its ID.
func makes(t *testing.T, m mock, path string, body map[string]any) string {
	t.Helper()
	answer, err := m.client(t).Do(t.Context(), http.MethodPost, path, body)
	var made struct{ ID string }
	if err != nil || answer.Status >= http.StatusBadRequest || json.Unmarshal(answer.Body, &made) != nil {
		t.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Body, err)
	}
	return made.ID
}

// makesServer makes one, as somebody does, in another network than a run's.
func makesServer(t *testing.T, m mock, name string, labels map[string]string) {
	t.Helper()
	makesServerIn(t, m, iaasmock.DefaultNetworkID, name, labels)
}

func makesServerIn(t *testing.T, m mock, network, name string, labels map[string]string) string {
	t.Helper()
	return makes(t, m, api.PathServers, map[string]any{
		"name": name, "machineType": iaasmock.DefaultMachineType, "labels": labels,
		"networking": map[string]any{"networkId": network},
		"bootVolume": map[string]any{"size": 10, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}},
	})
}
