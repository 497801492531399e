// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"net/http"
	"testing"
	"time"
)

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
