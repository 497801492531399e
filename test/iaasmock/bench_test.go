// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// BenchmarkCalls shows what a call costs with 1000 servers, without the network:
// the mock must not be what limits a test.
func BenchmarkCalls(b *testing.B) {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	call := func(method, path, body string) {
		request := httptest.NewRequestWithContext(b.Context(), method, inRegion+path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		cloud.ServeHTTP(response, request)
		if response.Code >= 300 {
			b.Fatalf("%d %s", response.Code, response.Body)
		}
	}
	for i := range 1000 {
		call(http.MethodPost, "/servers", fmt.Sprintf(`{"name":"s%d","machineType":"c2i.2","labels":{"machine":"s%d"},
			"networking":{"networkId":%q},"imageId":%q}`, i, i, iaasmock.DefaultNetworkID, iaasmock.DefaultImageID))
	}
	id := cloud.Servers()[500].ID
	for name, path := range map[string]string{
		"get": "/servers/" + id, "list": "/servers", "list-one": "/servers?label_selector=machine%3Ds500", "nics": "/nics",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				call(http.MethodGet, path, "")
			}
		})
	}
}
