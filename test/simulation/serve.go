// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const endpoint = "http://iaas.invalid"

// direct serves somebody else, whom nothing befalls.
type direct struct{ cloud *iaasmock.Cloud }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	request, err := buffered(request)
	if err != nil {
		return nil, err
	}
	return serve(d.cloud, request)
}

// buffered reads the request's body, so that it can be looked at and sent late.
func buffered(request *http.Request) (*http.Request, error) {
	body := []byte{}
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return request, nil
}

// serve answers in memory: no network, so that the bubble's time can pass.
func serve(cloud *iaasmock.Cloud, request *http.Request) (response *http.Response, err error) {
	defer func() {
		cause := recover()
		if abort, ok := cause.(error); ok && errors.Is(abort, http.ErrAbortHandler) { // a reset connection
			response, err = nil, cmp.Or(request.Context().Err(), io.ErrUnexpectedEOF)
		} else if cause != nil {
			panic(cause)
		}
	}()
	recorder := httptest.NewRecorder()
	cloud.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}
