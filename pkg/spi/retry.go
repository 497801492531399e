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
	// maxAttempts limits the attempts of a request, including the first. The manager calls again after
	// 5 s, so a few are enough to bridge a short failure.
	maxAttempts = 4
	// firstBackoff doubles with every retry; each is multiplied by a random factor
	// between 0.5 and 1.5.
	firstBackoff = 250 * time.Millisecond
)

// mayRetry reports whether a request may be sent again after this answer or error. A server must
// never be created twice, so a POST is repeated only if it cannot have been accepted: nothing of it
// was written, or the API answered 429. A read is not repeated after 429 or a timeout: its callers
// poll, and repeated reads kept STACKIT's limit of a source address exceeded (seen at its object
// storage in September 2026).
func mayRetry(method string, response *http.Response, err error) bool {
	switch isRead := method == http.MethodGet; {
	case isHeldBack(err), errors.Is(err, ErrTooLarge), isRead && isTimeout(err):
		return false
	case err != nil:
		return method != http.MethodPost || isUnwritten(err)
	case response.StatusCode == http.StatusTooManyRequests:
		return !isRead
	}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return method != http.MethodPost
	default:
		return false
	}
}

// backoff returns the wait before the given retry (1 is the first); random is in 0 to 1.
func backoff(retry int, random float64) time.Duration {
	return time.Duration(float64(firstBackoff<<(retry-1)) * (0.5 + random))
}

// retrying repeats requests by mayRetry, and notes a read's final answer in Session.Reads.
type retrying struct {
	next   http.RoundTripper
	reads  *Reads
	clock  clock.Clock
	jitter func() float64
}

// RoundTrip implements http.RoundTripper.
func (r *retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, began := withAttempts(request.Context()), r.clock.Now()
	var response *http.Response // of the attempt before
	var failure error
	for attempt := 1; ; attempt++ {
		try, err := rewound(request.WithContext(ctx))
		if err != nil {
			return nil, notSent(err)
		}
		answer, err := r.next.RoundTrip(try)
		if attempt > 1 && isHeldBack(err) && ctx.Err() == nil {
			return response, failure // the earlier outcome has more information
		}
		response, failure = answer, err
		if attempt == maxAttempts || !mayRetry(request.Method, response, err) {
			if err == nil && request.Method == http.MethodGet {
				r.reads.note(began, response.StatusCode)
			}
			return response, err
		}
		if Sleep(ctx, r.clock, backoff(attempt, r.jitter())) != nil { // the caller left
			return response, err
		}
	}
}
