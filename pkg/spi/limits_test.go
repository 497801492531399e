// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/pages"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestThePagesHaveTheNumbersOfTheCode(t *testing.T) {
	pages.HaveNumbers(t, map[string][]string{
		"README.md": {
			fmt.Sprintf("A request is sent up to %d times, after %v, %v and %v s,", maxAttempts,
				firstBackoff.Seconds(), 2*firstBackoff.Seconds(), 4*firstBackoff.Seconds()),
			fmt.Sprintf("no answer within %v s (GET) or %v s", readAttemptTimeout.Seconds(), writeAttemptTimeout.Seconds()),
		},
		"../provider/README.md": {
			fmt.Sprintf("one read begins every %d ms, %d a second", 1000/readsPerSecond, readsPerSecond),
			fmt.Sprintf("no other of its Secret begins for %v, %v, %v … %v s", firstReadPause.Seconds(),
				2*firstReadPause.Seconds(), 4*firstReadPause.Seconds(), maxPause.Seconds()),
		},
		"../../cmd/machine-controller/README.md": {fmt.Sprintf("%d a second for each Secret", readsPerSecond)},
	})
}

// Each row of the page's threats names tests that fail without it.
func TestThePageNamesTestsThatExist(t *testing.T) { pages.HaveTests(t, "README.md") }

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

// After a read that is answered 429, or 401, no other begins for a while, for longer each time; writes go on. Any other
// answer ends that.
func TestReadsPauseAfterTooMany(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusUnauthorized} {
		bubble(t, strconv.Itoa(status), func(t *testing.T) {
			reads := newReads(clock.RealClock{}, func() float64 { return 1 })
			for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
				pause, began := time.Duration(seconds)*time.Second, time.Now()
				reads.note(began, status)
				reads.note(began.Add(-time.Millisecond), status) // was under way
				if err := reads.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < pause || took > pause+time.Second/readsPerSecond {
					t.Errorf("the pause took %s, want %s", took, pause)
				}
			}
			reads.note(time.Now(), http.StatusNotFound)
			reads.note(time.Now(), status)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			if err := reads.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waiting for longer than the caller's deadline ended with %v", err)
			}
			began := time.Now()
			if _ = reads.Wait(t.Context()); time.Since(began) > time.Second {
				t.Errorf("the next pause took %s more, want a second in all", time.Since(began))
			}
		})
	}
	bubble(t, "that begins while one waits for its turn", func(t *testing.T) {
		reads := newReads(clock.RealClock{}, func() float64 { return 1 })
		_ = reads.Wait(t.Context())
		began := time.Now()
		time.AfterFunc(time.Second/readsPerSecond/2, func() { reads.note(time.Now(), http.StatusTooManyRequests) })
		if _ = reads.Wait(t.Context()); time.Since(began) < firstReadPause {
			t.Errorf("the read began after %s", time.Since(began))
		}
	})
	bubble(t, "of a session", func(t *testing.T) {
		r := newRig(t)
		session := r.session()
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusTooManyRequests})
		_ = apiCalls["LIST"](t.Context(), session.API)
		began := time.Now()
		if err := apiCalls["POST"](t.Context(), session.API); err != nil || time.Since(began) > 0 {
			t.Errorf("a write took %s: %v", time.Since(began), err)
		}
		if _ = session.Reads.Wait(t.Context()); time.Since(began) < firstReadPause/2 {
			t.Errorf("the pause took %s", time.Since(began))
		}
	})
}
