// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"net/http"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestA401IsAnsweredWithANewTokenOnce(t *testing.T) {
	r := newRig(t)
	session := r.session()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, Status: http.StatusUnauthorized, Body: "Jwks doesn't have key", ContentType: "text/plain"})
	if err := list(t.Context(), session); err != nil {
		t.Errorf("a single 401 fails the call: %v", err)
	}
	// Sent again with the token that was refused, it would only have been luck.
	if tokens := r.cloud.CallCounts()["Token"]; tokens != 2 {
		t.Errorf("%d tokens were fetched, want 2", tokens)
	}
	r.cloud.ResetCalls()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusUnauthorized})
	if err := list(t.Context(), session); err == nil {
		t.Error("401 for ever is no failure")
	}
	if calls := r.cloud.CallCounts()["ListServers"]; calls != 2 {
		t.Errorf("%d calls, want 2", calls)
	}
}
