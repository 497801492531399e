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
		want   bool
	}{
		"not connected":         {0, &NotSentError{Attempted: true, Err: dial}, true},
		"not connected in time": {0, &NotSentError{Attempted: true, Err: timeoutError(time.Second)}, false},
		"connection lost":       {0, reset, true},
		"cut off":               {0, io.ErrUnexpectedEOF, true},
		"no answer in time":     {0, timeoutError(time.Second), false},
		"too large":             {0, fmt.Errorf("reading: %w", ErrTooLarge), false},
		"not sent":              {0, &NotSentError{Err: dial}, false},
		"success":               {200, nil, false},
		"refused":               {400, nil, false},
		"too many requests":     {429, nil, false},
		"internal error":        {500, nil, false},
		"bad gateway":           {502, nil, true},
		"service unavailable":   {503, nil, true},
		"gateway timeout":       {504, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayRetry(&http.Response{StatusCode: row.status}, row.err); got != row.want {
				t.Errorf("%t, want %t", got, row.want)
			}
		})
	}
}

// A server must never be made twice: of the writes only what surely was not accepted is sent again.
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
		"a DELETE, bad gateway":       {"DELETE", "DeleteServer", gateway, 1, false},
		"a PATCH, answer lost":        {"PATCH", "UpdateNic", iaasmock.Fault{Count: 1, DropAfter: true}, 1, false},
		"a POST, no connection":       {"POST", "CreateServer", iaasmock.Fault{Count: 1, DropBefore: true}, 1, false},
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
