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
// do. ask gets each request and its body, answer each answer; nil leaves them as they are.
func spoil(
	t *testing.T, m mock,
	ask func(r *http.Request, body []byte) []byte,
	answer func(r *http.Request, status int, body []byte) (int, []byte),
) string {
	t.Helper()
	target, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if ask == nil {
			return
		}
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return
		}
		body = ask(r.Out, body)
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}}
	proxy.ModifyResponse = func(response *http.Response) error {
		if answer == nil {
			return nil
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		response.StatusCode, body = answer(response.Request, response.StatusCode, body)
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
		if len(body) > 0 {
			response.Header.Set("Content-Type", "application/json")
		}
		response.ContentLength, response.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

var (
	serverPath = regexp.MustCompile(`/servers/([0-9a-f-]{36})$`)
	volumePath = regexp.MustCompile(`/volumes/([0-9a-f-]{36})$`)
)

// forgetRunning answers GETs of servers that run with 404, after the first.
func forgetRunning(t *testing.T, m mock) string {
	t.Helper()
	var mu sync.Mutex
	reads := map[string]bool{}
	return spoil(t, m, nil, func(r *http.Request, status int, body []byte) (int, []byte) {
		found := serverPath.FindStringSubmatch(r.URL.Path)
		if r.Method != http.MethodGet || found == nil || !bytes.Contains(body, []byte(`"ACTIVE"`)) {
			return status, body
		}
		mu.Lock()
		defer mu.Unlock()
		if !reads[found[1]] {
			reads[found[1]] = true
			return status, body
		}
		return http.StatusNotFound, []byte(`{"code":404,"msg":"server not found"}`)
	})
}

// dropLabels shows servers to GET without the driver's labels.
func dropLabels(t *testing.T, m mock) string {
	t.Helper()
	return spoil(t, m, nil, func(r *http.Request, status int, body []byte) (int, []byte) {
		var server map[string]any
		if serverPath.MatchString(r.URL.Path) && r.Method == http.MethodGet && json.Unmarshal(body, &server) == nil {
			delete(server, "labels")
			body, _ = json.Marshal(server)
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

// keepVolumes names boot volumes itself, and keeps them when their server goes.
func keepVolumes(t *testing.T, m mock) string {
	t.Helper()
	return spoil(t, m, func(_ *http.Request, body []byte) []byte {
		return bytes.ReplaceAll(body, []byte(`"deleteOnTermination":true`), []byte(`"deleteOnTermination":false`))
	}, func(r *http.Request, status int, body []byte) (int, []byte) {
		if volumePath.MatchString(r.URL.Path) && status == http.StatusOK {
			body = bytes.Replace(body, []byte(`{`), []byte(`{"name":"boot-4711",`), 1)
		}
		return status, body
	})
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

// forbidAndIgnore answers GETs of what was deleted with 403, ignores selectors, and once answers
// a POST with the server of somebody else.
func forbidAndIgnore(t *testing.T, m mock) string {
	t.Helper()
	makesServer(t, m, "database-of-somebody", map[string]string{})
	m.inject(t, `{"preset":"wrong-server","count":1}`)
	var mu sync.Mutex
	deleted := map[string]bool{}
	return spoil(t, m, func(r *http.Request, body []byte) []byte {
		query := r.URL.Query()
		query.Del("label_selector")
		r.URL.RawQuery = query.Encode()
		return body
	}, func(r *http.Request, status int, body []byte) (int, []byte) {
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
