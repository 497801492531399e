// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxAttempts limits the attempts of a read, including the first. The driver polls, so a few are
	// enough to bridge a short failure.
	maxAttempts = 4
	// firstBackoff doubles with every retry; each is multiplied by a random factor
	// between 0.5 and 1.5.
	firstBackoff = 250 * time.Millisecond
)

// mayRetry reports whether a read may be sent again after this answer or error. After 429 or a
// timeout it is not: its callers poll, and repeated reads kept STACKIT's limit of a source address
// exceeded (seen at its object storage in September 2026).
func mayRetry(response *http.Response, err error) bool {
	if err != nil {
		return !isHeldBack(err) && !errors.Is(err, ErrTooLarge) && !isTimeout(err)
	}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// backoff returns the wait before the given retry (1 is the first); random is in 0 to 1.
func backoff(retry int, random float64) time.Duration {
	return time.Duration(float64(firstBackoff<<(retry-1)) * (0.5 + random))
}

// retrying repeats reads by mayRetry, each at its turn in Session.Reads, and notes their answers
// there. Writes are repeated by their callers, except as authenticated and paced say.
type retrying struct {
	next   http.RoundTripper
	reads  *Reads
	clock  clock.Clock
	jitter func() float64
}

// RoundTrip implements http.RoundTripper.
func (r *retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return r.next.RoundTrip(request)
	}
	for attempt := 1; ; attempt++ {
		began := r.clock.Now()
		response, err := r.next.RoundTrip(request)
		r.reads.note(began, response)
		if attempt == maxAttempts || !mayRetry(response, err) {
			return response, err
		}
		ctx := request.Context()
		if Sleep(ctx, r.clock, backoff(attempt, r.jitter())) != nil || r.reads.Wait(ctx) != nil {
			return response, err // the caller left: the earlier outcome has more information
		}
	}
}
