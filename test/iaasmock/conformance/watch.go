// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks each request and answer of the IaaS API against the official
// OpenAPI document:
//
//	cloud := iaasmock.New()
//	api := httptest.NewServer(conformance.Watch(t, cloud))
//
// These rules are checked for each call:
//   - A request that was answered with success matches the document. One that matches may
//     still be refused: STACKIT has rules that are not in the document.
//   - The answer has a documented status, the documented body and no undocumented property.
//   - The call is counted under the document's operationId.
//
// Answers that an iaasmock.Fault replaced are not checked.
package conformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// TB is what Watch needs of a testing.TB or GinkgoTInterface.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Watch returns a handler that calls next and checks every call. Deviations fail the test in
// t.Cleanup, so call Watch before you register the server's Close.
func Watch(t TB, next http.Handler) http.Handler {
	t.Helper()
	found := &findings{}
	t.Cleanup(func() {
		if text := found.text(); text != "" {
			t.Errorf("%s", text)
		}
	})
	return Handler(next, found.add)
}

// Handler returns a handler that calls next and checks every call. report gets each
// deviation after next has answered; it may be called concurrently. Reset connections,
// answers that a Fault replaced and calls outside /v2/ are not checked.
func Handler(next http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v2/") {
			next.ServeHTTP(w, r)
			return
		}
		requestBody, err := io.ReadAll(r.Body)
		if err != nil { // the client is gone
			next.ServeHTTP(w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(requestBody))
		var call iaasmock.Call
		recorder := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r.WithContext(iaasmock.NoteCall(r.Context(), &call)))
		dropped := call.Operation != "" && call.Status == 0
		if dropped || call.Replaced {
			return
		}
		if err := (exchange{
			request: r, requestBody: requestBody, operation: call.Operation,
			status: recorder.status, header: w.Header(), body: recorder.body.Bytes(),
		}).check(); err != nil {
			report(err)
		}
	})
}

// recorder passes an answer on and keeps its status and body.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader passes the status on.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write passes a part of the body on.
func (r *recorder) Write(part []byte) (int, error) {
	r.body.Write(part)
	return r.ResponseWriter.Write(part)
}

// findings are the deviations of one test; the first ten are printed.
type findings struct {
	mu  sync.Mutex
	all []error
}

func (f *findings) add(deviation error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, deviation)
}

func (f *findings) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return ""
	}
	text := fmt.Sprintf("calls deviate from the API document (%d):", len(f.all))
	for _, deviation := range f.all[:min(len(f.all), 10)] {
		text += "\n- " + deviation.Error()
	}
	return text
}
