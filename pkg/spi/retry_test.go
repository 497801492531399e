// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"net/http"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

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
		"a LIST, internal error":      {"LIST", "ListServers", iaasmock.Fault{Count: 1, Status: 500}, 1, false},
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
