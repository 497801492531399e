// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	servers = "/v2/projects/10000000-0000-4000-8000-000000000001/regions/eu01/servers"
	server  = servers + "/10000000-0000-4000-8000-000000000002"

	goodServer = `{"name":"a","machineType":"c2i.2"}`
)

// Deviations made on purpose must be found, and an API without any must pass.
func TestDeviationsAreFound(t *testing.T) {
	for _, row := range []struct {
		name, method, path, request string
		status                      int
		answer                      string
		want                        string // in the deviation; "" if there is none
	}{
		{"a server", "GET", server, "", 200, goodServer, ""},
		{"a server without machineType", "GET", server, "", 200, `{"name":"a"}`, `property "machineType" is missing`},
		{"a name that is a number", "GET", server, "", 200, `{"name":1,"machineType":"c2i.2"}`, `value must be a string`},
		{"a property for requests only", "GET", server, "", 200, `{"name":"a","machineType":"c2i.2","securityGroups":["a"]}`,
			"writeOnly"},
		{"no user data", "GET", server + "?details=true", "", 200, `{"name":"a","machineType":"c2i.2","userData":null}`, ""},
		{"a list that is null", "GET", servers, "", 200, `{"items":null}`, "not nullable"},
		{"a wrong status", "GET", server, "", 201, goodServer, "does not define this status"},
		{"a body where there is none", "DELETE", server, "", 204, "{}", "no body for this status"},
		{"a bad request accepted", "POST", servers, "{}", 201, goodServer, "accepted, although the document says"},
		{"a bad parameter accepted", "GET", server + "?details=maybe", "", 200, goodServer,
			"accepted, although the document says"},
		{"a bad request refused", "POST", servers, "{}", 400, `{"code":400,"msg":"no name"}`, ""},
		{"an error without msg", "POST", servers, "{}", 400, `{"code":400}`, `"msg" is missing`},
		{"an operation there is not", "GET", "/v2/elsewhere", "", 200, "{}", "the document says"},
		{"no operation", "GET", "/v2/elsewhere", "", 404, "{}", ""},
		{"another API", "GET", "/v3/servers", "", 200, "{}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.answer)
			})
			got := deviations(t, api, row.method, row.path, row.request)
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("found %q, want %q", got, row.want)
			}
		})
	}
}

func TestFaultsAreNotTheAPI(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	cloud.Inject(iaasmock.Fault{Status: 200, Body: "{"})
	if found := deviations(t, cloud, http.MethodGet, servers, ""); found != "" {
		t.Error(found)
	}
}

// failures is a test that may fail.
type failures struct {
	testing.TB
	cleanups []func()
	text     string
}

func (f *failures) Cleanup(cleanup func())            { f.cleanups = append(f.cleanups, cleanup) }
func (f *failures) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }

// deviations returns with which message a test fails that makes this call.
func deviations(t *testing.T, api http.Handler, method, path, body string) string {
	t.Helper()
	watched := &failures{TB: t}
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	conformance.Watch(watched, api).ServeHTTP(httptest.NewRecorder(), request)
	for _, cleanup := range watched.cleanups {
		cleanup()
	}
	return watched.text
}
