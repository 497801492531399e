// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
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

// RoundTrip implements http.RoundTripper. The answer it returns is in memory (see
// bodyReader): nobody reads on when the deadline's context is given up.
func (d *deadlined) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), d.timeout)
	defer cancel()
	return d.next.RoundTrip(request.WithContext(ctx))
}
