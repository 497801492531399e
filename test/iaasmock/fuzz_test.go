// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// FuzzCreateServer sends any body: the answer is a server or an error in the API's form.
func FuzzCreateServer(f *testing.F) {
	whole, err := json.Marshal(serverBody(object{"labels": object{"a": nil}, "agent": object{}}))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(whole), "", "null", "[[[", `{"networking":[]}`, `{"name":{},"bootVolume":{"source":[]}}`,
		strings.Replace(string(whole), "20", "1e400", 1), strings.Replace(string(whole), "20", "-1", 1),
	} {
		f.Add(seed)
	}
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	f.Fuzz(func(t *testing.T, body string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, inRegion+"/servers", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		conformance.Watch(t, cloud).ServeHTTP(response, request)
		var answer struct {
			ID, Msg string
			Code    int
		}
		if err := json.Unmarshal(response.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%d %s: %v", response.Code, response.Body, err)
		}
		created := response.Code == 201 && answer.ID != ""
		refused := response.Code >= 400 && response.Code < 500 && answer.Code == response.Code && answer.Msg != ""
		if !created && !refused {
			t.Errorf("%d %s", response.Code, response.Body)
		}
	})
}

// FuzzBody sends bodies, at first each with each of its values replaced: no answer is a 5xx, a
// refusal has the API's form, and each answer is as the API document has it.
func FuzzBody(f *testing.F) {
	step := 1
	if testing.Short() {
		step = 4
	}
	for i, row := range bodies {
		for some := range slices.Chunk(deviations(row.body), step) {
			f.Add(uint8(i), some[0])
		}
	}
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		row := bodies[int(which)%len(bodies)]
		request := httptest.NewRequestWithContext(t.Context(), row.method, row.url(), strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		conformance.Watch(t, cloud).ServeHTTP(response, request)
		var refused struct {
			Msg  string
			Code int
		}
		if response.Code >= 400 && json.Unmarshal(response.Body.Bytes(), &refused) != nil {
			t.Fatalf("%d %s", response.Code, response.Body)
		}
		if response.Code >= 500 || response.Code >= 400 && (refused.Code != response.Code || refused.Msg == "") {
			t.Errorf("%d %s", response.Code, response.Body)
		}
	})
}
