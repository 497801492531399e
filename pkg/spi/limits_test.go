// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// Hundreds of servers to create or delete do not keep the reads waiting.
func TestReadsGoBeforeWrites(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		t.Run(method, func(t *testing.T) { testReadsGoBefore(t, method) })
	}
}

func testReadsGoBefore(t *testing.T, method string) {
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{}
		session, err := (&PluginSPIImpl{
			Config: Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Limiter: rate.NewLimiter(10, 1), Transport: seen,
		}).Session(Credentials{ProjectID: testProject})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _ = apiCalls[method](ctx, session.API) })
		}
		<-time.After(time.Second)
		asked := time.Now()
		if err := apiCalls["LIST"](ctx, session.API); err != nil {
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
