// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestMayRetry(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for name, row := range map[string]struct {
		status     int
		err        error
		safe, post bool
	}{
		"not connected":       {0, dial, true, true},
		"connection lost":     {0, reset, true, false},
		"cut off":             {0, io.ErrUnexpectedEOF, true, false},
		"no answer in time":   {0, errors.New("no complete answer within 30s"), true, false},
		"cancelled":           {0, context.Canceled, false, false},
		"not sent":            {0, &NotSentError{Err: dial}, false, false},
		"success":             {200, nil, false, false},
		"refused":             {400, nil, false, false},
		"not found":           {404, nil, false, false},
		"too many requests":   {429, nil, true, true},
		"internal error":      {500, nil, false, false},
		"bad gateway":         {502, nil, true, false},
		"service unavailable": {503, nil, true, false},
		"gateway timeout":     {504, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var response *http.Response
			if row.err == nil {
				response = &http.Response{StatusCode: row.status}
			}
			for method, want := range map[string]bool{
				http.MethodGet: row.safe, http.MethodDelete: row.safe, http.MethodPatch: row.safe,
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
	for retry, middle := range map[int]time.Duration{1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 3: time.Second} {
		low, high := backoff(retry, 0), backoff(retry, 1)
		if low != middle/2 || high != middle*3/2 {
			t.Errorf("retry %d waits %s to %s, want half to one and a half times %s", retry, low, high, middle)
		}
	}
}

func TestRetryBridgesAnOutageOfSafeCalls(t *testing.T) {
	r := newRig(t)
	session := r.session()
	for name, fault := range map[string]iaasmock.Fault{
		"bad gateway":       {Count: 2, Status: http.StatusBadGateway, Body: "<html>", ContentType: "text/html"},
		"too many requests": {Count: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}},
		"reset":             {Count: 2, DropBefore: true},
		"answer lost":       {Count: 1, DropAfter: true},
	} {
		fault.Operation = "ListServers"
		r.cloud.Inject(fault)
		if err := list(t.Context(), session); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server must never be made twice: only what surely was not accepted is sent
// again.
func TestRequestsForServersAreRepeatedOnlyIfRefused(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		calls int
	}{
		"too many requests":   {iaasmock.Fault{Status: http.StatusTooManyRequests, Count: 1}, 2},
		"bad gateway":         {iaasmock.Fault{Status: http.StatusBadGateway, Count: 1}, 1},
		"service unavailable": {iaasmock.Fault{Status: http.StatusServiceUnavailable, Count: 1}, 1},
		"answer lost":         {iaasmock.Fault{DropAfter: true, Count: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			row.fault.Operation = "CreateServer"
			r.cloud.Inject(row.fault)
			network := iaasmock.DefaultNetworkID
			_, _ = r.session().API.CreateServer(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
				CreateServerPayload(iaas.CreateServerPayload{Name: "m1", MachineType: iaasmock.DefaultMachineType,
					Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}}}).Execute()
			if calls := r.cloud.CallCounts()["CreateServer"]; calls != row.calls {
				t.Errorf("%d calls, want %d", calls, row.calls)
			}
		})
	}
}

func TestAnAnswerThatStopsHalfWayIsReadAgain(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"items":[`))
			panic(http.ErrAbortHandler)
		}
		answerEmptyList(w, r)
	}))
	defer server.Close()
	if err := list(t.Context(), openSession(t, server.URL)); err != nil {
		t.Error(err)
	}
}

// Reads that fail and are retried are as many reads a second as others.
func TestRetriesOfReadsTakeTurns(t *testing.T) {
	const callers = 40
	for _, method := range []string{"LIST", "GET"} {
		bubble(t, method, func(t *testing.T) {
			seen := &arrivals{failures: callers}
			session := sessionOver(t, seen)
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					if err := apiCalls[method](t.Context(), session.API); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			retries := seen.all()[callers:]
			if len(retries) != callers {
				t.Fatalf("%d retries, want %d", len(retries), callers)
			}
			for i := range retries[1:] {
				gap := retries[i+1].at.Sub(retries[i].at)
				if gap < time.Second/readsPerSecond-time.Millisecond {
					t.Fatalf("a retry is sent %s after another", gap)
				}
			}
		})
	}
}

func TestRetriesOfReadsAndOthersShareTheTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{failures: 1}
		session := sessionOver(t, seen)
		if !session.Reads.Allow() || session.Reads.Allow() {
			t.Fatal("two reads may begin at once")
		}
		for range 3 * readsPerSecond {
			session.Reads.Reserve()
		}
		asked := time.Now()
		if err := apiCalls["GET"](t.Context(), session.API); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took < 3*time.Second {
			t.Errorf("the retry is sent after %s, before the reads whose turn it is", took)
		}
	})
}
