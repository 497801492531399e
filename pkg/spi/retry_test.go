// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestMayRetry(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for name, row := range map[string]struct {
		status int
		err    error
		// read, change and post report whether a GET, a PATCH or DELETE, and a POST are sent again.
		read, change, post bool
	}{
		"not connected":         {0, &NotSentError{Attempted: true, Err: dial}, true, true, true},
		"not connected in time": {0, &NotSentError{Attempted: true, Err: timeoutError(time.Second)}, false, true, true},
		"connection lost":       {0, reset, true, true, false},
		"cut off":               {0, io.ErrUnexpectedEOF, true, true, false},
		"no answer in time":     {0, timeoutError(time.Second), false, true, false},
		"too large":             {0, fmt.Errorf("reading: %w", ErrTooLarge), false, false, false},
		"not sent":              {0, &NotSentError{Err: dial}, false, false, false},
		"success":               {200, nil, false, false, false},
		"refused":               {400, nil, false, false, false},
		"not found":             {404, nil, false, false, false},
		"too many requests":     {429, nil, false, true, true},
		"internal error":        {500, nil, false, false, false},
		"bad gateway":           {502, nil, true, true, false},
		"service unavailable":   {503, nil, true, true, false},
		"gateway timeout":       {504, nil, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var response *http.Response
			if row.err == nil {
				response = &http.Response{StatusCode: row.status}
			}
			for method, want := range map[string]bool{
				http.MethodGet: row.read, http.MethodDelete: row.change, http.MethodPatch: row.change,
				http.MethodPost: row.post,
			} {
				if got := mayRetry(method, response, row.err); got != want {
					t.Errorf("%s: %t, want %t", method, got, want)
				}
			}
		})
	}
}

func TestBackoffDoubles(t *testing.T) {
	for retry, middle := range map[int]time.Duration{1: 250 * time.Millisecond, 2: 500 * time.Millisecond,
		3: time.Second} {
		low, high := backoff(retry, 0), backoff(retry, 1)
		if low != middle/2 || high != middle*3/2 {
			t.Errorf("retry %d waits %s to %s, want half to one and a half times %s", retry, low, high, middle)
		}
	}
}

// A server must never be made twice: only what surely was not accepted is sent again.
func TestWhatIsSentAgain(t *testing.T) {
	tooMany := iaasmock.Fault{Count: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}}
	gateway := iaasmock.Fault{Count: 2, Status: http.StatusBadGateway, Body: "<html>", ContentType: "text/html"}
	for name, row := range map[string]struct {
		call, operation string
		fault           iaasmock.Fault
		attempts        int
		ok              bool
	}{
		"a LIST, too many requests":   {"LIST", "ListServers", tooMany, 1, false},
		"a GET, too many requests":    {"GET", "GetServer", tooMany, 1, false},
		"a LIST, bad gateway":         {"LIST", "ListServers", gateway, 3, true},
		"a LIST, reset":               {"LIST", "ListServers", iaasmock.Fault{Count: 2, DropBefore: true}, 3, true},
		"a LIST, answer lost":         {"LIST", "ListServers", iaasmock.Fault{Count: 1, DropAfter: true}, 2, true},
		"a LIST, half an answer":      {"LIST", "ListServers", iaasmock.Fault{Count: 1, HalfAnswer: true}, 2, true},
		"a LIST, no answer":           {"LIST", "ListServers", iaasmock.Fault{Count: 1, NeverAnswers: true}, 1, false},
		"a POST, too many requests":   {"POST", "CreateServer", tooMany, 2, true},
		"a POST, bad gateway":         {"POST", "CreateServer", gateway, 1, false},
		"a POST, service unavailable": {"POST", "CreateServer", iaasmock.Fault{Count: 1, Status: 503}, 1, false},
		"a POST, answer lost":         {"POST", "CreateServer", iaasmock.Fault{Count: 1, DropAfter: true}, 1, false},
		"a POST, half an answer":      {"POST", "CreateServer", iaasmock.Fault{Count: 1, HalfAnswer: true}, 1, false},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			row.fault.Operation = row.operation
			r.cloud.Inject(row.fault)
			if err := apiCalls[row.call](t.Context(), r.session().API); (err == nil) != row.ok {
				t.Errorf("got %v, want success: %t", err, row.ok)
			}
			if attempts := r.cloud.CallCounts()[row.operation]; attempts != row.attempts {
				t.Errorf("%d attempts, want %d", attempts, row.attempts)
			}
		})
	}
}
