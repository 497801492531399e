// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A list that hangs keeps nobody from learning by a read of its own that the
// server runs.
func TestAHangingListHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, 10)
		time.AfterFunc(5*time.Second, func() {
			c.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Delay: 24 * time.Hour})
		})
		c.each(c.bringUp)
		if over := slices.Max(c.overBoot()); over > 20*time.Second {
			t.Errorf("one took %s over the boot of its server", over)
		}
	})
}

// A list of all may fail where reads of one do not: the SDK refuses a whole list for
// one server that it cannot decode.
func TestAListThatFailsForAllFailsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, 10)
		for _, operation := range []string{"ListServers", "ListNics"} {
			c.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusOK, Body: `{"items":[5]}`,
				Match: func(r *http.Request) bool {
					return !strings.Contains(r.URL.Query().Get("label_selector"), provider.StackitMachineLabel+"=")
				}})
		}
		c.each(c.bringUp)
		if over := slices.Max(c.overBoot()); over > 20*time.Second {
			t.Errorf("one took %s over the boot of its server", over)
		}
		if peak := c.peakReads(); peak >= 10 {
			t.Errorf("%d reads within a second", peak)
		}
	})
}

// One server that took long to boot says little about the next.
func TestAServerThatBootsFasterThanTheLastIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1)
		remove := c.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
		c.setLater(4*time.Minute, "slow", iaasmock.StatusActive, "")
		c.mustCreate(machine("slow"))
		remove()
		c.each(c.bringUp)
		if over := c.overBoot(); over[0] > 6*time.Second {
			t.Errorf("took %s over the boot of the server", over[0])
		}
	})
}

// A server that took longer than usual does not delay those that may run any moment.
func TestASlowServerDoesNotDelayThoseThatAreDue(t *testing.T) {
	for age := 90; age <= 105; age++ {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 0, 0, iaasmock.WithBootDuration(100*time.Second), iaasmock.WithBootSpread(0))
			c.mustCreate(machine("first"))
			remove := c.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
			c.setLater(190*time.Second, "slow", iaasmock.StatusActive, "")
			var slow sync.WaitGroup
			slow.Go(func() {
				if _, err := c.create(machine("slow")); err != nil {
					t.Error(err)
				}
			})
			<-time.After(time.Duration(age) * time.Second)
			remove()
			start := time.Now()
			c.mustCreate(machine("next"))
			if took := time.Since(start); took > 101500*time.Millisecond {
				t.Errorf("%d s after the slow one a server took %s, want the 100 s that it boots and no more than 1.5 s", age, took)
			}
			slow.Wait()
		})
	}
}

// However late the driver notices that the first server of a class runs, it does not
// expect as much of the next, wherever its reads fall.
func TestTheUsualBootIsWhatTheCloudTells(t *testing.T) {
	late := time.Duration(0)
	for boot := 60; boot <= 100; boot++ {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 2, 1, iaasmock.WithBootDuration(time.Duration(boot)*time.Second), iaasmock.WithBootSpread(0))
			c.each(c.bringUp)
			over := c.overBoot()
			late = max(late, over[0])
			if over[1] > 1200*time.Millisecond {
				t.Errorf("took %s over a boot of %d s, want no more than 1.2 s", over[1], boot)
			}
		})
	}
	if late < 5*time.Second {
		t.Errorf("the first was noticed %s late at most, want more: nothing was tested", late)
	}
}

// A request that is answered late says nothing of how long servers boot.
func TestALateAnswerIsNoPartOfTheBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 5, 1, iaasmock.WithBootDuration(40*time.Second), iaasmock.WithBootSpread(0))
		c.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", AnswerDelay: 8 * time.Second})
		c.each(c.bringUp)
		if over := c.overBoot(); over[4] > 1200*time.Millisecond {
			t.Errorf("took %s over the boots of the servers, want no more than 1.2 s in the end", over)
		}
	})
}

// Nor does it keep a fault of the next waiting.
func TestAServerThatFailsInTheLullIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 0, 0, iaasmock.WithBootDuration(2*time.Minute))
		c.mustCreate(machine("first"))
		c.setLater(30*time.Second, "second", iaasmock.StatusError, "No valid host was found.")
		start := time.Now()
		_, err := c.create(machine("second"))
		wantCode(t, err, codes.ResourceExhausted)
		if took := time.Since(start); took > 45*time.Second {
			t.Errorf("noticed after %s", took)
		}
	})
}

// Lists that still show a server as it was do not make its deletion count as failed.
func TestManyDeletionsInLaggingListsAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 20, 20, iaasmock.WithListLag(25*time.Second))
		c.each(c.bringUp)
		<-time.After(time.Minute)
		c.cloud.ResetCalls()
		c.each(c.bringDown)
		c.wantNothingLeft()
		if asked := c.cloud.CallCounts()["DeleteServer"]; asked != 20 {
			t.Errorf("%d requests to delete 20 servers", asked)
		}
	})
}
