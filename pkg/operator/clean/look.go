// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"fmt"
	"net/http"
	"path"
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
	if err := deletion.stillOrphan(request.Context()); err != nil {
		deletion.cancel(err) // first: the chain would repeat the request after an error alone
		return nil, err
	}
	deletion.sent.Store(true)
	return l.next.RoundTrip(request)
}

// stillOrphan reads the server, and then the Machines and Nodes, again; through the session of
// the plan, so that the reads do not queue with the deletions'. A server that the API does not
// find may be there all the same: it is judged as it was, and the driver proves it gone.
func (d *deletion) stillOrphan(ctx context.Context) error {
	server := &d.server
	seen, err := d.in.at.Server(ctx, d.ID)
	if err == nil {
		server = seen
	} else if !provider.IsNotFound(err) {
		return d.in.at.Failure(err)
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
	// sent says that a DELETE may have been sent.
	sent atomic.Bool
}
