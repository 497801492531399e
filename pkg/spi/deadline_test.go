// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAttemptEndsAtItsDeadline(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	halfWay := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"items":[`))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, handler := range map[string]http.HandlerFunc{"without an answer": silent, "in the middle of the body": halfWay} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			transport := NewTransport()
			defer transport.CloseIdleConnections()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			link := &deadlined{next: &bodyReader{next: transport, limit: maxAnswer}, timeout: 50 * time.Millisecond}
			if response, err := link.RoundTrip(request); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, %v, want an error that is not the caller's deadline", response, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if response, err := link.RoundTrip(request.WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, %v, want the caller's deadline", response, err)
			}
		})
	}
}

func TestEveryAttemptHasADeadlineOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		session, err := (&PluginSPIImpl{
			Config: Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Jitter: func() float64 { return 0.5 },
			Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
				attempts++
				<-request.Context().Done()
				return nil, request.Context().Err()
			}),
		}).Session(Credentials{ProjectID: testProject})
		if err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		err = list(t.Context(), session)
		if took := time.Since(asked).Truncate(attemptTimeout); err == nil || errors.Is(err, context.DeadlineExceeded) || attempts != maxAttempts || took != maxAttempts*attemptTimeout {
			t.Errorf("%d attempts in %s end with %v, want %d of %s each", attempts, took, err, maxAttempts, attemptTimeout)
		}
	})
}
