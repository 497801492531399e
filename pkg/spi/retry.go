// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// maxAttempts of a request, the first included. The manager calls again after
	// 5 s, so a handful is enough to bridge a hiccup.
	maxAttempts = 4
	// firstBackoff doubles with every retry; each is multiplied with a random factor
	// between 0.5 and 1.5.
	firstBackoff = 250 * time.Millisecond
	// maxRetryAfter is the longest wait that a Retry-After header can ask for.
	maxRetryAfter = 60 * time.Second
)

// mayRetry is the policy: whether a request that ended so may be sent again.
// A server must never be made twice, so a POST is repeated only if it surely was
// not accepted: the connection could not be made, or the API said "too many".
func mayRetry(method string, response *http.Response, err error) bool {
	if err != nil {
		if isNotSent(err) || errors.Is(err, context.Canceled) {
			return false
		}
		return method != http.MethodPost || isDialError(err)
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return method != http.MethodPost
	default:
		return false
	}
}

func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// backoff before the given retry (1 is the first); random is in 0 to 1.
func backoff(retry int, random float64) time.Duration {
	return time.Duration(float64(firstBackoff<<(retry-1)) * (0.5 + random))
}

// retryAfter reads the header of a 429 or 503, in seconds or as a date; 0 without
// one.
func retryAfter(response *http.Response, now time.Time) time.Duration {
	if response == nil {
		return 0
	}
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := response.Header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		wait = date.Sub(now)
	}
	return max(0, min(wait, maxRetryAfter))
}

// retrying repeats requests by mayRetry. A Retry-After holds back every request
// of the session, not only the one that got it.
type retrying struct {
	next http.RoundTripper
	// reads bounds the reads of the session. A first attempt took its turn already:
	// see Session.Reads.
	reads  *rate.Limiter
	clock  clock.Clock
	jitter func() float64

	mu        sync.Mutex
	notBefore time.Time
}

// RoundTrip implements http.RoundTripper.
func (r *retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	var response *http.Response // of the attempt before
	for attempt := 1; ; attempt++ {
		held, err := r.waitUntilAllowed(ctx)
		if err != nil {
			return nil, notSent(err)
		}
		if (attempt > 1 || held) && request.Method == http.MethodGet {
			if err := WaitForRead(ctx, r.clock, r.reads); err != nil {
				return nil, notSent(err)
			}
		}
		try, err := rewound(request)
		if err != nil {
			return nil, err
		}
		if attempt > 1 {
			countRetry(request, response)
		}
		response, err = r.next.RoundTrip(try)
		r.holdBack(response)
		if attempt == maxAttempts || ctx.Err() != nil || !mayRetry(request.Method, response, err) {
			return response, err
		}
		if Sleep(ctx, r.clock, backoff(attempt, r.jitter())) != nil {
			return response, err
		}
	}
}

func (r *retrying) holdBack(response *http.Response) {
	now := r.clock.Now()
	wait := retryAfter(response, now)
	if wait == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if until := now.Add(wait); until.After(r.notBefore) {
		r.notBefore = until
	}
}

// waitUntilAllowed waits for the end of every Retry-After, and says whether there was one:
// then the request's turn among the reads is long over.
func (r *retrying) waitUntilAllowed(ctx context.Context) (held bool, err error) {
	for {
		r.mu.Lock()
		wait := r.notBefore.Sub(r.clock.Now())
		r.mu.Unlock()
		if wait <= 0 {
			return held, ctx.Err()
		}
		held = true
		if err := waitFor(ctx, r.clock, wait, waitRetryAfter); err != nil {
			return held, err
		}
	}
}
