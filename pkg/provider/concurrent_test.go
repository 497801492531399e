// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

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
