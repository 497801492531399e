// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// request is a call on its way to a handler.
type request struct {
	*http.Request
	vars  map[string]string
	body  []byte
	fault fault.Fault
}

func (r *request) project() string { return r.vars["projectId"] }
func (r *request) region() string  { return r.vars["region"] }

// selector reads label_selector, a selector of Kubernetes. Clients are known to send no
// other form, and what they saw refused is none.
func (r *request) selector() (labels.Selector, *apiError) {
	if r.fault.IgnoreSelector {
		return labels.Everything(), nil
	}
	selector, err := labels.Parse(r.URL.Query().Get("label_selector"))
	if err != nil {
		// Source: pull request 88 of the public STACKIT provider for
		// machine-controller-manager saw this message for a comma at the end; it is that
		// of Kubernetes.
		return nil, badRequest("invalid label_selector: %v", err)
	}
	return selector, nil
}

// flag reads a boolean query parameter, whose form the document has checked; the default is
// false.
func (r *request) flag(name string) bool {
	value, _ := strconv.ParseBool(r.URL.Query().Get(name))
	return value
}

// maxBody is the largest body in bytes. The API documents no limit.
const maxBody = 4 << 20

func readBody(r *http.Request) ([]byte, *apiError) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		// Source: none; the mock does not have the memory for it.
		return nil, newError(http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	}
	if err != nil {
		// Source: none; the client has disconnected, there is nothing to accept.
		return nil, badRequest("request body has an error: %v", err)
	}
	return body, nil
}
