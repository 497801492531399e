// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks each request and answer of the IaaS API against the official
// OpenAPI document:
//
//	cloud := iaasmock.New()
//	api := httptest.NewServer(conformance.Watch(t, cloud))
//
// A request that was answered with success must match the document; a matching request may
// still be refused, since STACKIT has rules that are not in the document. The answer must have a
// documented status and the documented body. Answers that an iaasmock.Fault replaced are not checked.
package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// Load parses the API document, once per process; this takes 50 ms. Without Load, the first checked
// call parses it. A test with a synctest bubble should call Load before the bubble, which must not
// wait for another test's parsing.
func Load() { _, _ = openapi.Find(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}}) }

// TB is the subset of testing.TB and GinkgoTInterface that Watch uses.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// Watch returns a handler that calls next and checks every call below /v2/. A cleanup function fails
// the test if there were deviations, and prints the first ten. Call Watch before you register the
// server's Close, so that the check runs after it.
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
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r, next); err != nil {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, err.Error())
		}
	})
}

// serve lets next answer the request. The error says how the call deviates from the document.
func serve(w http.ResponseWriter, r *http.Request, next http.Handler) error {
	if !strings.HasPrefix(r.URL.Path, "/v2/") {
		next.ServeHTTP(w, r)
		return nil
	}
	asked, err := io.ReadAll(r.Body)
	wasRead := err == nil // else the client is gone
	if wasRead {
		r.Body = io.NopCloser(bytes.NewReader(asked))
	}
	var call iaasmock.Call
	answer := &recorder{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(answer, r.WithContext(iaasmock.NoteCall(r.Context(), &call)))
	dropped := call.Operation != "" && call.Status == 0
	if !wasRead || dropped || call.Replaced {
		return nil
	}
	if err := check(r, asked, answer); err != nil {
		const maxShown = 600
		return fmt.Errorf("%s %s -> %d: %w\n\trequest  %.*s\n\tresponse %.*s", r.Method, r.URL.RequestURI(),
			answer.status, err, maxShown, asked, maxShown, answer.body.Bytes())
	}
	return nil
}

func check(r *http.Request, asked []byte, answer *recorder) error {
	isSuccess := answer.status < http.StatusBadRequest
	input, err := openapi.Find(r)
	if err != nil && isSuccess {
		return fmt.Errorf("answered, although the document says: %w", err)
	}
	if input == nil || answer.status == http.StatusNotFound { // also an operation that the mock does not have
		return nil
	}
	if message := openapi.Refusal(input, asked); isSuccess && message != "" {
		return fmt.Errorf("accepted, although the document says: %s", message)
	}
	documented := input.Route.Operation.Responses.Status(answer.status)
	if documented == nil {
		return errors.New("the document does not define this status")
	}
	if len(documented.Value.Content) == 0 && answer.body.Len() > 0 {
		return errors.New("the document defines no body for this status")
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.status, Header: answer.Header(),
		Body: io.NopCloser(bytes.NewReader(answer.body.Bytes())),
	})
	if err != nil {
		return errors.New(openapi.FirstLine(err))
	}
	return nil
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
