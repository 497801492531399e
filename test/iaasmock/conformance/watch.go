// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks each request and answer of the IaaS API against the official
// OpenAPI document:
//
//	cloud := iaasmock.New()
//	api := httptest.NewServer(conformance.Watch(t, cloud))
//
// These rules are checked for each call:
//   - A request that was answered with success matches the document. A matching request may
//     still be refused: STACKIT has rules that are not in the document.
//   - The answer has a documented status, the documented body and no undocumented property.
//   - The call is counted under the document's operationId.
//
// Answers that an iaasmock.Fault replaced are not checked.
package conformance

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// TB is the subset of testing.TB and GinkgoTInterface that Watch uses.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Watch returns a handler that calls next and checks every call. A cleanup function fails the test
// if there were deviations, and prints the first ten. Call Watch before you register the server's
// Close, so that the check runs after it.
func Watch(t TB, next http.Handler) http.Handler {
	t.Helper()
	var mu sync.Mutex
	var found []string
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(found) > 0 {
			first := strings.Join(found[:min(len(found), 10)], "\n- ")
			t.Errorf("calls deviate from the API document (%d):\n- %s", len(found), first)
		}
	})
	return Handler(next, func(deviation error) {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, deviation.Error())
	})
}

// Handler returns a handler that calls next, checks every call, and then calls report with each
// deviation, possibly concurrently. It does not check reset connections, answers that a Fault
// replaced, or calls outside /v2/.
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

// recorder passes an answer on and records its status and body.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// Unwrap returns the wrapped ResponseWriter, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader records the status and passes it on.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write records a part of the body and passes it on.
func (r *recorder) Write(part []byte) (int, error) {
	r.body.Write(part)
	return r.ResponseWriter.Write(part)
}
