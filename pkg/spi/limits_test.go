// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// Hundreds of servers to create or delete do not keep the reads waiting, whatever projects they are in.
func TestReadsGoBeforeWrites(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		bubble(t, method, func(t *testing.T) {
			seen := &arrivals{}
			sessions := &PluginSPIImpl{
				Config: Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Limiter: rate.NewLimiter(10, 1), Transport: seen,
			}
			call := func(ctx context.Context, method, project string) error {
				session, err := sessions.Session(Credentials{ProjectID: project})
				if err != nil {
					return err
				}
				return apiCalls[method](ctx, session.API)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i := range 100 {
				all.Go(func() { _ = call(ctx, method, strconv.Itoa(i)) })
			}
			<-time.After(time.Second)
			asked := time.Now()
			if err := call(ctx, "LIST", testProject); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(asked); took > 300*time.Millisecond {
				t.Errorf("the read waited %s, want two turns of 100 ms at most", took)
			}
			if sent := seen.of(method); sent < 10 {
				t.Errorf("%d writes were sent meanwhile, want at least 10", sent)
			}
			cancel()
			all.Wait()
		})
	}
}
