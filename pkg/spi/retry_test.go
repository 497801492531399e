// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
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
		"attempt's deadline":  {0, context.DeadlineExceeded, true, false},
		"cancelled":           {0, context.Canceled, false, false},
		"no access token":     {0, &TokenError{Err: dial}, false, false},
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
			for method, want := range map[string]bool{http.MethodGet: row.safe, http.MethodDelete: row.safe, http.MethodPatch: row.safe, http.MethodPost: row.post} {
				if got := mayRetry(method, response, row.err); got != want {
					t.Errorf("%s: %t, want %t", method, got, want)
				}
			}
		})
	}
}

func TestBackoffGrowsToItsBound(t *testing.T) {
	last := time.Duration(0)
	for retry := 1; retry < 20; retry++ {
		low, high := backoff(retry, 0), backoff(retry, 1)
		if low < last/2 || high > maxBackoff*3/2 || low <= 0 || high < low {
			t.Errorf("retry %d waits %s to %s after %s", retry, low, high, last)
		}
		last = low
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		status int
		header string
		want   time.Duration
	}{
		"seconds":            {429, "7", 7 * time.Second},
		"a date":             {503, now.Add(9 * time.Second).Format(http.TimeFormat), 9 * time.Second},
		"none":               {429, "", 0},
		"nonsense":           {429, "soon", 0},
		"negative":           {429, "-5", 0},
		"in the past":        {429, now.Add(-time.Hour).Format(http.TimeFormat), 0},
		"too long":           {429, "99999999999", maxRetryAfter},
		"far in the future":  {429, now.Add(time.Hour).Format(http.TimeFormat), maxRetryAfter},
		"of a success":       {200, "7", 0},
		"of another failure": {500, "7", 0},
	} {
		t.Run(name, func(t *testing.T) {
			response := &http.Response{StatusCode: row.status, Header: http.Header{"Retry-After": {row.header}}}
			if got := retryAfter(response, now); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}
