// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	boot     = 10 * time.Second
	remove   = 5 * time.Second
	inRegion = "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/" + iaasmock.DefaultRegion
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		code = 1
	}
	os.Exit(code)
}

// mock is a Cloud behind real HTTP, with a clock that the test steps.
type mock struct {
	t     *testing.T
	cloud *iaasmock.Cloud
	clock *clocktesting.FakeClock
	url   string
	token string
}

func newMock(t *testing.T, opts ...iaasmock.Option) *mock {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	cloud := iaasmock.New(append([]iaasmock.Option{iaasmock.WithClock(clock)}, opts...)...)
	server := httptest.NewServer(conformance.Watch(t, cloud))
	t.Cleanup(server.Close)
	return &mock{t: t, cloud: cloud, clock: clock, url: server.URL}
}

// openMock needs no tokens.
func openMock(t *testing.T, opts ...iaasmock.Option) *mock {
	t.Helper()
	return newMock(t, append(opts, iaasmock.WithoutAuthentication())...)
}

type object = map[string]any

// do sends body, raw if it is a string, and returns what came back.
func (m *mock) do(method, path string, body any) (status int, answer object) {
	m.t.Helper()
	response, raw, err := m.try(method, path, body)
	if err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &answer); err != nil {
			m.t.Fatalf("%s %s: %d is not JSON: %s", method, path, response.StatusCode, raw)
		}
	}
	return response.StatusCode, answer
}

func (m *mock) try(method, path string, body any) (*http.Response, []byte, error) {
	m.t.Helper()
	var content io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		content = bytes.NewBufferString(body)
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			m.t.Fatal(err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(m.t.Context(), method, m.url+path, content)
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if m.token != "" {
		request.Header.Set("Authorization", "Bearer "+m.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return response, raw, err
}

// want is do for an expected status.
func (m *mock) want(status int, method, path string, body any) object {
	m.t.Helper()
	got, answer := m.do(method, path, body)
	if got != status {
		m.t.Fatalf("%s %s answered %d %v, want %d", method, path, got, answer, status)
	}
	return answer
}

// create makes a server and returns its ID.
func (m *mock) create(change object) string {
	m.t.Helper()
	return m.want(201, "POST", inRegion+"/servers", serverBody(change))["id"].(string)
}

// list returns the items of a list.
func (m *mock) list(path string) []any {
	m.t.Helper()
	return m.want(200, "GET", inRegion+path, nil)["items"].([]any)
}

// wantStatus checks what a GET of the server shows; "" means 404.
func (m *mock) wantStatus(id, status string) object {
	m.t.Helper()
	code, answer := m.do("GET", inRegion+"/servers/"+id, nil)
	if status == "" {
		if code != 404 {
			m.t.Errorf("the server is there: %d %v", code, answer)
		}
		return nil
	}
	if code != 200 || answer["status"] != status {
		m.t.Errorf("the server is %d %v, want %s", code, answer["status"], status)
	}
	return answer
}

// serverBody is a body for CreateServer; nil in change removes a field.
func serverBody(change object) object {
	body := object{
		"name": "server1", "machineType": iaasmock.DefaultMachineType,
		"networking": object{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume": object{
			"size": 20, "deleteOnTermination": true,
			"source": object{"type": "image", "id": iaasmock.DefaultImageID},
		},
	}
	maps.Copy(body, change)
	maps.DeleteFunc(body, func(_ string, value any) bool { return value == nil })
	return body
}

func names(items []any) []string {
	found := []string{}
	for _, item := range items {
		found = append(found, item.(object)["name"].(string))
	}
	return found
}

func (m *mock) nic(id string) (iaasmock.NIC, bool) {
	for _, nic := range m.cloud.NICs() {
		if nic.ID == id {
			return nic, true
		}
	}
	return iaasmock.NIC{}, false
}

func (m *mock) server(id string) iaasmock.Server {
	m.t.Helper()
	server, ok := m.cloud.Server(id)
	if !ok {
		m.t.Fatalf("no server %s", id)
	}
	return server
}

// status of a call; 0 if its connection was lost.
func (m *mock) status(method, path string, body any) int {
	m.t.Helper()
	response, _, err := m.try(method, path, body)
	if err != nil {
		return 0
	}
	return response.StatusCode
}
