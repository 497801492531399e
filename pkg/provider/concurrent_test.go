// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The read of another machine makes both wait for one list, which says "none" to
// both.
func TestTwoCallsAtATimeMakeOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigInMemory(t, iaasmock.WithLatency(50*time.Millisecond, 50*time.Millisecond))
		errs := make([]error, 2)
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = r.status(machine("m2")) })
		synctest.Wait()
		for i := range errs {
			calls.Go(func() { _, errs[i] = r.create(machine("m1")) })
		}
		calls.Wait()
		r.onlyServer()
		if posts := r.cloud.CallCounts()["CreateServer"]; posts != 1 {
			t.Errorf("%d servers were asked for", posts)
		}
		for _, err := range errs {
			if err != nil {
				wantCode(t, err, codes.Aborted) // comes back at once, and adopts
			}
		}
	})
}

// The first request is under way for longer than what was sent takes to show.
func TestACallDuringALongRequestMakesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigInMemory(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Delay: 20 * time.Second})
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusTooManyRequests})
		errs := make([]error, 2)
		var calls sync.WaitGroup
		for i := range errs {
			calls.Go(func() { _, errs[i] = r.create(machine("m1")) })
			<-time.After(time.Second)
		}
		calls.Wait()
		r.onlyServer()
		if errs[0] != nil {
			t.Error(errs[0])
		}
		wantCode(t, errs[1], codes.Aborted)
	})
}

// The server is made, and reading the answer panics long after the request was claimed.
func TestAPanicInTheRequestIsLikeALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigInMemory(t, iaasmock.WithListLag(20*time.Second))
		cloud, panicked := r.api, false
		r.api = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			cloud.ServeHTTP(w, request)
			if request.Method == http.MethodPost && !panicked {
				panicked = true
				panic("cannot read this")
			}
		})
		r.driver = provider.NewProvider(r.inMemorySessions(),
			provider.WithActingSince(func() time.Time { return time.Now().Add(-time.Hour) }))
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: 25 * time.Second})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.Internal)
		r.mustCreate(machine("m1"))
		r.onlyServer()
	})
}
