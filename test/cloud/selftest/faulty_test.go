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

// spoil makes an API that is wrong in one way out of the mock's answers, for what the mock
// itself cannot do. change gets each answer, and may replace its status and body.
func spoil(t *testing.T, m mock, change func(r *http.Request, status int, body []byte) (int, []byte)) string {
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
		response.StatusCode, body = change(response.Request, response.StatusCode, body)
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
		response.Header.Set("Content-Type", "application/json")
		response.ContentLength, response.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

var serverPath = regexp.MustCompile(`/servers/([0-9a-f-]{36})$`)

// ignoreSelectors drops the selector of lists before the mock sees it.
func ignoreSelectors(t *testing.T, m mock) string {
	t.Helper()
	target, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		query := r.Out.URL.Query()
		query.Del("label_selector")
		r.Out.URL.RawQuery = query.Encode()
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// forgetRunning answers each second GET of a server that runs with 404.
func forgetRunning(t *testing.T, m mock) string {
	t.Helper()
	var mu sync.Mutex
	reads := map[string]int{}
	return spoil(t, m, func(r *http.Request, status int, body []byte) (int, []byte) {
		found := serverPath.FindStringSubmatch(r.URL.Path)
		if r.Method != http.MethodGet || found == nil || !bytes.Contains(body, []byte(`"ACTIVE"`)) {
			return status, body
		}
		mu.Lock()
		defer mu.Unlock()
		if reads[found[1]]++; reads[found[1]]%2 == 1 {
			return status, body
		}
		return http.StatusNotFound, []byte(`{"code":404,"msg":"server not found"}`)
	})
}

// dropLabels shows servers without the driver's labels: in each answer, or in lists alone.
func dropLabels(t *testing.T, m mock) string {
	t.Helper()
	return spoil(t, m, func(r *http.Request, status int, body []byte) (int, []byte) {
		var server map[string]any
		if serverPath.MatchString(r.URL.Path) && r.Method == http.MethodGet && json.Unmarshal(body, &server) == nil {
			delete(server, "labels")
			body, _ = json.Marshal(server)
		}
		return status, body
	})
}

// withStranger is the mock as it is, with a server of somebody else.
func withStranger(t *testing.T, m mock) string {
	t.Helper()
	newSomebody(t, m).makes(api.PathServers, map[string]any{
		"name": "database-of-somebody", "machineType": iaasmock.DefaultMachineType, "networking": map[string]any{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume": map[string]any{"size": 10, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}},
	})
	return m.url
}

// leakVolumes makes servers whose boot volume stays when they go.
func leakVolumes(t *testing.T, m mock) string {
	t.Helper()
	target, err := url.Parse(m.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return
		}
		body = bytes.ReplaceAll(body, []byte(`"deleteOnTermination":true`), []byte(`"deleteOnTermination":false`))
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}
