// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// attemptTimeout is the deadline of one HTTP attempt, to the end of its body.
const attemptTimeout = 30 * time.Second

// deadlined ends an attempt after the timeout.
type deadlined struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper. Its error is not context.DeadlineExceeded: that
// is the caller's own deadline. The answer it returns is in memory (see bodyReader): nobody
// reads on when the deadline's context is given up.
func (d *deadlined) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), d.timeout)
	defer cancel()
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	if err != nil && ctx.Err() != nil && request.Context().Err() == nil {
		return nil, fmt.Errorf("no complete answer within %s", d.timeout)
	}
	return response, err
}
