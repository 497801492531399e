// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync/atomic"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// lastLook is the transport of the sessions that clean deletes with. Right before each
// attempt that changes something, it looks whether the server is still an orphan: after all
// that may take long, such as the retries and limits of the session's chain.
type lastLook struct {
	next http.RoundTripper
	// deletions are those under way, by the ID of their server.
	deletions map[string]*deletion
}

// RoundTrip implements http.RoundTripper.
func (l *lastLook) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodPost: // POSTs ask for access tokens: a deletion has no other
		return l.next.RoundTrip(request)
	}
	deletion, ok := l.deletions[path.Base(request.URL.Path)]
	if !ok {
		return nil, fmt.Errorf("%s %s is not about an orphan", request.Method, request.URL.Path)
	}
	err := deletion.stillOrphan(request.Context())
	if provider.IsNotFound(err) { // nothing is sent: the API would say so, too, and the wait decides
		return notFound(request), nil
	}
	if err != nil {
		deletion.cancel(err) // first: the chain would repeat the request after an error alone
		return nil, err
	}
	before := deletion.sent.Swap(true)
	response, err := l.next.RoundTrip(request)
	if err == nil && isRefusal(response.StatusCode) {
		deletion.sent.Store(before)
	}
	return response, err
}

// isRefusal says whether the answer to a DELETE proves that it was not accepted.
func isRefusal(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// notFound is the API's answer about a server that it does not find.
func notFound(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusNotFound, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(`{"code":404,"msg":"server not found"}`)),
	}
}

// stillOrphan reads the server, and then the Machines and Nodes, again; through the session of
// the plan, so that the reads do not queue with the deletions'. Of a server that the API does not
// find nothing is known.
func (d *deletion) stillOrphan(ctx context.Context) error {
	server, err := d.in.at.Server(ctx, d.ID)
	switch {
	case provider.IsNotFound(err):
		return err
	case err != nil:
		return d.in.at.Failure(err)
	case d.server.IsDeleting() && !server.IsDeleting():
		return errors.New("left alone: it is not being deleted any more: run this again")
	case server.Name != d.server.Name || !server.CreatedAt.Equal(d.server.CreatedAt) || !maps.Equal(server.Labels, d.server.Labels):
		return errors.New("left alone: it has changed since it was shown: run this again")
	}
	machines, err := d.plan.access.Machines(ctx, d.plan.namespaces...)
	if err != nil {
		return err
	}
	known, err := d.plan.factsOf(ctx, machines)
	if err != nil {
		return err
	}
	if kept := d.plan.keeps(server, known); kept != nil {
		return fmt.Errorf("left alone: %s", kept.Reason)
	}
	return nil
}

// deletion is that of one orphan.
type deletion struct {
	*Orphan
	plan *Plan
	wait bool
	// ctx ends with the deletion. A last look that refuses a DELETE ends it, too, and is
	// its cause.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// sent says that a DELETE may have been accepted.
	sent atomic.Bool
}
