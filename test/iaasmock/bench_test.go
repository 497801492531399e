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

const (
	fullServers = 5000
	perPool     = 50
)

// fullCloud holds servers in pools of 50, each with a disk and a NIC.
func fullCloud(tb testing.TB, servers int) *iaasmock.Cloud {
	tb.Helper()
	cloud := iaasmock.New(iaasmock.WithoutAuthentication(), iaasmock.WithBootDuration(0))
	for i := range servers {
		call(tb, cloud, http.MethodPost, "/servers", poolServer(i))
	}
	cloud.ResetCalls()
	return cloud
}

func poolServer(i int) string {
	return fmt.Sprintf(`{"name":"s%d","machineType":"c2i.2","userData":"I2Nsb3VkLWNvbmZpZwo=",
		"labels":{"kubernetes.io/machine":"s%d","kubernetes.io/cluster":"one","kubernetes.io/machineclass":"pool%d"},
		"networking":{"networkId":%q},"bootVolume":{"size":20,"deleteOnTermination":true,"source":{"type":"image","id":%q}}}`,
		i, i, i/perPool, iaasmock.DefaultNetworkID, iaasmock.DefaultImageID)
}

// call goes straight to the handler, without a network.
func call(tb testing.TB, cloud *iaasmock.Cloud, method, path, body string) *httptest.ResponseRecorder {
	tb.Helper()
	request := httptest.NewRequestWithContext(tb.Context(), method, inRegion+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	cloud.ServeHTTP(response, request)
	if response.Code >= 300 {
		tb.Fatalf("%s %s: %d %s", method, path, response.Code, response.Body)
	}
	return response
}

// poolList lists 50 of many.
const poolList = "/servers?label_selector=kubernetes.io%2Fcluster%3Done%2Ckubernetes.io%2Fmachineclass%3Dpool7"

// BenchmarkCalls shows what a call costs with 5,000 servers, without the
// network: the mock must not be what limits a test.
func BenchmarkCalls(b *testing.B) {
	cloud := fullCloud(b, fullServers)
	server := cloud.Servers()[2500]
	for name, path := range map[string]string{
		"get": "/servers/" + server.ID, "get-details": "/servers/" + server.ID + "?details=true",
		"list-50": poolList, "list-50-details": poolList + "&details=true",
		"list-1": "/servers?label_selector=kubernetes.io%2Fmachine%3Ds500", "list-5000": "/servers",
		"nics-of-server": "/servers/" + server.ID + "/nics", "nics-5000": "/nics", "quotas": "/quotas",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b, cloud, http.MethodGet, path, "")
			}
		})
	}
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call(b, cloud, http.MethodPost, "/servers", poolServer(0))
		}
	})
}
