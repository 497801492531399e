// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"net/http"
)

type guardKey struct{}

// guard is what a context carries for its requests.
type guard struct {
	mayWrite func(context.Context) error
	cancel   context.CancelCauseFunc
}

// WithGuard returns a context whose requests ask mayWrite before they change anything: right
// before each attempt that is not a GET, after all that may take long, and before the
// attempt's own time begins. Its first error ends the context, with that error as
// context.Cause: nothing more is sent. mayWrite may itself read from the API. stop releases
// the context.
func WithGuard(ctx context.Context, mayWrite func(context.Context) error) (guardedCtx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	return context.WithValue(ctx, guardKey{}, &guard{mayWrite, cancel}), func() { cancel(nil) }
}

// guarded lets an attempt ask its context's guard.
type guarded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	asked, ok := request.Context().Value(guardKey{}).(*guard)
	if ok && request.Method != http.MethodGet {
		if err := asked.mayWrite(request.Context()); err != nil {
			asked.cancel(err)
			return nil, err
		}
	}
	return g.next.RoundTrip(request)
}
