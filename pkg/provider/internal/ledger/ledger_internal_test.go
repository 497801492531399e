// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// No map of the ledger keeps what nobody will ask for again.
func TestTheLedgerShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(clock.RealClock{}, 30*time.Second)
		use := func(machine string) {
			key := Key{Machine: machine}
			l.Adopt(key, "server of "+machine)
			l.ServerGone(key, "server of "+machine)
		}
		for i := range 1000 {
			use(fmt.Sprint(i))
		}
		<-time.After(2 * Lifetime)
		use("last")
		if len(l.entries) != 1 || len(l.gone) != 1 {
			t.Errorf("%d entries and %d servers that are gone are kept, want those of one machine", len(l.entries), len(l.gone))
		}
	})
}
