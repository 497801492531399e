// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Handler returns a handler that calls next and checks every call. report gets each
// deviation after next has answered; it may be called concurrently. Reset connections,
// answers that a Fault replaced and calls outside /v2/ are not checked.
func (d *Document) Handler(next http.Handler, report func(error)) http.Handler {
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
		if err := d.check(exchange{
			request: r, requestBody: requestBody, operation: call.Operation,
			status: recorder.status, header: w.Header(), body: recorder.body.Bytes(),
		}); err != nil {
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
