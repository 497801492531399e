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
	goodBody   = `{"name":"a","machineType":"c2i.2","networking":{"networkId":"20000000-0000-4000-8000-000000000001"}}`
	refusal    = `{"code":400,"msg":"request body has an error: ` +
		`doesn't match schema #/components/schemas/v2CreateServer: ` +
		`doesn't match schema due to: Error at \"/name\": property \"name\" is missing"}`
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
		{"a property that there is not", "GET", server, "", 200, `{"name":"a","machineType":"c2i.2","machinetype":"x"}`,
			"the document does not define the properties /machinetype"},
		{"such a property in a list", "GET", servers, "", 200,
			`{"items":[{"name":"a","machineType":"b","bootVolume":{"x":1}}]}`, "define the properties /items/0/bootVolume/x"},
		{"a property for requests only", "GET", server, "", 200, `{"name":"a","machineType":"c2i.2","securityGroups":["a"]}`,
			"writeOnly"},
		{"labels are free", "GET", server, "", 200, `{"name":"a","machineType":"c2i.2","labels":{"a/b":"c"}}`, ""},
		{"no user data", "GET", server + "?details=true", "", 200, `{"name":"a","machineType":"c2i.2","userData":null}`, ""},
		{"null instead of a name", "GET", server, "", 200, `{"name":null,"machineType":"c2i.2"}`, "not nullable"},
		{"a list that is null", "GET", servers, "", 200, `{"items":null}`, "not nullable"},
		{"a list without items", "GET", servers, "", 200, `{}`, `"items" is missing`},
		{"a wrong status", "GET", server, "", 201, goodServer, "does not define this status"},
		{"a body where there is none", "DELETE", server, "", 204, "{}", "no body for this status"},
		{"nothing instead of a server", "GET", server, "", 200, "", "decode response body"},
		{"an error without msg", "GET", server, "", 404, `{"code":404}`, `"msg" is missing`},
		{"a status nobody knows", "POST", servers, goodBody, 418, `{"code":418,"msg":"teapot"}`, "not define this status"},
		{"a bad request accepted", "POST", servers, "{}", 201, goodServer, "accepted, although the document says"},
		{"a bad parameter accepted", "GET", server + "?details=maybe", "", 200, goodServer,
			"accepted, although the document says"},
		{"a bad request refused", "POST", servers, `{"machineType":"c2i.2"}`, 400, refusal, ""},
		{"a good request refused", "POST", servers, goodBody, 400, `{"code":400,"msg":"machine type is not valid"}`, ""},
		{"an operation there is not", "GET", "/v2/elsewhere", "", 200, "{}", "the document says"},
		{"no operation", "GET", "/v2/elsewhere", "", 404, "{}", ""},
		{"a method there is not", "PUT", servers, "", 405, "{}", ""},
		{"another API", "GET", "/v3/servers", "", 200, "{}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.answer)
			})
			got := deviations(api, row.method, row.path, row.request)
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("found %q, want %q", got, row.want)
			}
		})
	}
}

func deviations(api http.Handler, method, path, body string) string {
	found := ""
	handler := conformance.Handler(api, func(err error) { found += err.Error() })
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	return found
}

func TestFaultsAreNotTheAPI(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	const list = "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/eu01/servers"
	for _, fault := range []iaasmock.Fault{
		{Status: 502, ContentType: "text/html", Body: "<html>"}, {Status: 503}, {Status: 200, Body: "{"},
	} {
		fault.Count = 1
		cloud.Inject(fault)
		if found := deviations(cloud, http.MethodGet, list, ""); found != "" {
			t.Errorf("%+v: %s", fault, found)
		}
	}
	if calls := cloud.Calls(); len(calls) != 3 || !calls[0].Replaced || calls[0].Status != 502 {
		t.Errorf("calls are noted as %+v", calls)
	}
	if found := deviations(cloud, http.MethodGet, list, ""); found != "" || cloud.Calls()[3].Replaced {
		t.Errorf("without a fault: %s %+v", found, cloud.Calls()[3])
	}
}

func TestWrongNamesOfOperationsAreFound(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication())
	elsewhere := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = strings.Replace(r.URL.Path, "/networks", "/servers", 1)
		cloud.ServeHTTP(w, r)
	})
	const networks = "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/eu01/networks"
	if found := deviations(elsewhere, http.MethodGet, networks, ""); !strings.Contains(found, "counted as ListServers") {
		t.Errorf("found %q", found)
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

func TestWatchFailsTheTest(t *testing.T) {
	watched := &failures{TB: t}
	api := conformance.Watch(watched, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 12 {
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2/keypairs", http.NoBody))
	}
	if len(watched.cleanups) != 1 || watched.text != "" {
		t.Fatalf("%d cleanups, said %q", len(watched.cleanups), watched.text)
	}
	watched.cleanups[0]()
	if !strings.HasPrefix(watched.text, "calls deviate from the API document (12):") ||
		strings.Count(watched.text, "\n- GET") != 10 {
		t.Errorf("said %s", watched.text)
	}
}
