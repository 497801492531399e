// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Calls of all sessions share the limit of the process.
func TestTheLimitOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &arrivals{}
		sessions := &PluginSPIImpl{
			Config: Config{Endpoint: "http://iaas.invalid", NoAuth: true}, Limiter: rate.NewLimiter(10, 5), Transport: seen,
		}
		var all sync.WaitGroup
		began := time.Now()
		for i := range 25 {
			session, err := sessions.Session(Credentials{ProjectID: strconv.Itoa(i % 3)})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() { _ = apiCalls["DELETE"](t.Context(), session.API) })
		}
		all.Wait()
		if took := time.Since(began); len(seen.all()) != 25 || took < 1999*time.Millisecond || took > 2001*time.Millisecond {
			t.Errorf("%d calls in %s, want 25 in 2 s", len(seen.all()), took)
		}
	})
}

// After a read that is answered 429, or 401, no other begins for a while, for longer each time; writes go on. Any other
// answer ends that.
func TestReadsPauseAfterTooMany(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusUnauthorized} {
		bubble(t, strconv.Itoa(status), func(t *testing.T) {
			reads := newReads(clock.RealClock{}, func() float64 { return 1 })
			for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
				pause, began := time.Duration(seconds)*time.Second, time.Now()
				reads.note(began, &http.Response{StatusCode: status})
				reads.note(began.Add(-time.Millisecond), &http.Response{StatusCode: status}) // was under way
				if err := reads.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < pause || took > pause+time.Second/readsPerSecond {
					t.Errorf("the pause took %s, want %s", took, pause)
				}
			}
			reads.note(time.Now(), &http.Response{StatusCode: http.StatusNotFound})
			reads.note(time.Now(), &http.Response{StatusCode: status})
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
		time.AfterFunc(time.Second/readsPerSecond/2, func() {
			reads.note(time.Now(), &http.Response{StatusCode: http.StatusTooManyRequests})
		})
		if _ = reads.Wait(t.Context()); time.Since(began) < firstPause {
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
		if _ = session.Reads.Wait(t.Context()); time.Since(began) < firstPause/2 {
			t.Errorf("the pause took %s", time.Since(began))
		}
	})
}

// Reads that are repeated do not begin all at once, and leave room for those that were there before.
func TestReadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, turn = 40, time.Second / readsPerSecond
		seen := &arrivals{failures: callers}
		session := sessionWith(t, seen, 0)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				if err := apiCalls["LIST"](t.Context(), session.API); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		repeated := seen.all()[callers:]
		if took, want := repeated[len(repeated)-1].at.Sub(repeated[0].at), (callers-1)*turn; len(repeated) != callers ||
			took < want-time.Millisecond {
			t.Errorf("%d reads are repeated within %s, want %d within %s", len(repeated), took, callers, want)
		}
	})
}

// 300 sidecars with three Machines each share an API that takes 20 POSTs a second. All servers run within half as long
// again as the API needs, with a boot of 20 s.
func TestAHerdOfSidecarsSharesAnAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const boot, ideal = 20 * time.Second, 60 * time.Second // 900 POSTs, of which 100 are taken at once
		limit, sent, began := rate.NewLimiter(20, 100), atomic.Int64{}, time.Now()
		api := inMemory(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sent.Add(1)
			w.Header().Set("Content-Type", "application/json")
			if !limit.Allow() {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			_, _ = io.WriteString(w, `{"id":"`+testServer+`", "machineType":"g2i.1", "name":"m1"}`)
		}))
		var machines sync.WaitGroup
		for range 300 {
			session := openSessionOver(t, "http://iaas.invalid", api)
			for range 3 {
				machines.Go(func() {
					for apiCalls["POST"](t.Context(), session.API) != nil {
						<-time.After(5 * time.Second) // as the manager does
					}
				})
			}
		}
		machines.Wait()
		took := time.Since(began) + boot
		t.Logf("%s, %.1f POSTs a server", took, float64(sent.Load())/900)
		if took > ideal*3/2 || sent.Load() > 4*900 {
			t.Errorf("%d POSTs in %s: want at most 3600 in %s", sent.Load(), took, ideal*3/2)
		}
	})
}
