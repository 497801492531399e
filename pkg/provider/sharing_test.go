// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Calls share reads: what one caller's read may do to the others.

// A list that is under way when a call begins may be from before what the call must see.
func TestACallIsAnsweredByNoListFromBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.list() // fetches the token
		const machinesOfEach = 8
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", AnswerDelay: 3 * time.Second, Duration: time.Second})
		all := machines(2 * machinesOfEach)
		early, late := all[:machinesOfEach], all[machinesOfEach:]
		done := start(func() error { wantNone(t, together(early, r.createErr)); return nil })
		<-time.After(1500 * time.Millisecond) // the early ones' list is under way
		made := map[string]string{}
		for _, m := range late {
			made[m.Name] = r.makeRunning(m.Name)
		}
		wantNone(t, together(late, func(m *v1alpha1.Machine) error {
			response, err := r.create(m)
			if err == nil && response.ProviderID != made[m.Name] {
				t.Errorf("%s gets %s beside %s", m.Name, response.ProviderID, made[m.Name])
			}
			return err
		}))
		wantCode(t, <-done, codes.OK)
		if got := len(r.cloud.Servers()); got != len(all) {
			t.Errorf("%d servers, want %d", got, len(all))
		}
	})
}

// Who leaves while a list or a GET is under way ends it for nobody else, whoever began it.
func TestACallerThatLeavesDisturbsNoOther(t *testing.T) {
	for _, operation := range []string{"ListServers", "GetServer"} {
		for _, n := range []int{2, 8} {
			bubble(t, fmt.Sprint(operation, ", machines: ", n), func(t *testing.T) {
				r := newRig(t, iaasmock.WithBootDuration(time.Minute))
				r.cloud.Inject(iaasmock.Fault{Operation: operation, AnswerDelay: 2 * time.Second})
				var all sync.WaitGroup
				began := time.Now()
				for i, m := range machines(n) {
					all.Go(func() {
						ctx, leave := context.WithCancel(t.Context())
						defer leave()
						leaves := i < n/2
						if leaves {
							time.AfterFunc(time.Duration(2*i)*time.Second+13500*time.Millisecond, leave)
						}
						_, err := r.driver.CreateMachine(ctx,
							&driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
						if leaves {
							wantCode(t, err, codes.Aborted)
						} else if err != nil {
							t.Errorf("%s: %v", m.Name, err)
						}
					})
				}
				all.Wait()
				wantWithin(t, began, time.Minute+30*time.Second)
			})
		}
	}
}

// It is made again for all.
func TestAListThatFailsForSeveralMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusServiceUnavailable,
			Duration: 8 * time.Second})
		all := machines(4)
		wantNone(t, together(all, r.createErr))
		if got := len(r.cloud.Servers()); got != len(all) {
			t.Errorf("%d servers for %d Machines", got, len(all))
		}
	})
}

// A list that fails is asked for ever less often, however many wait; they are read by ID meanwhile, and nothing
// storms.
func TestListsThatFailAreAskedForEverLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const boot = 5 * time.Minute
		r := newRig(t, iaasmock.WithBootDuration(boot))
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", After: 5 * time.Second,
			Status: http.StatusInternalServerError})
		began := time.Now()
		wantNone(t, together(machines(many(60)), r.createErr))
		wantWithin(t, began, boot+30*time.Second)
		failed := 0
		for _, call := range r.cloud.Calls() {
			if call.Operation == "ListServers" && call.Status == http.StatusInternalServerError {
				failed++
			}
		}
		t.Logf("%d lists failed", failed)
		if failed > 30 { // 15 lists, whose attempts may be repeated
			t.Errorf("%d lists that fail in %s", failed, boot)
		}
	})
}

// While nothing works a read is tried now and then, and not for each of those who wait. Once the API is back all is
// soon done.
func TestAnOutageOfAllCallsIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const boot, outage = 3 * time.Minute, time.Minute
		r := newRig(t, iaasmock.WithBootDuration(boot))
		began := time.Now()
		done := start(func() error { wantNone(t, together(machines(50), r.createErr)); return nil })
		<-time.After(30 * time.Second)
		r.cloud.ResetCalls()
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Duration: outage,
			Status: http.StatusServiceUnavailable})
		<-time.After(outage)
		calls := len(r.cloud.Calls())
		if t.Logf("%d calls", calls); calls > 120 {
			t.Errorf("%d calls within %s", calls, outage)
		}
		wantCode(t, <-done, codes.OK)
		wantWithin(t, began, boot+45*time.Second)
	})
}

// Many who wait, and lists that take long, keep no read of another call waiting for long.
func TestManyWhoWaitStarveNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithBootDuration(2*time.Minute))
		others := machines(30)
		for _, m := range others {
			m.Name = "other-" + m.Name
			id := r.makeServer(m.Name, func(labels map[string]any) { delete(labels, clusterLabel) }) // lists do not show it
			r.setStatus(id, iaasmock.StatusActive, "")
			m.Spec.ProviderID = providerIDOf(id)
		}
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", AnswerDelay: 1200 * time.Millisecond})
		done := start(func() error { wantNone(t, together(machines(50), r.createErr)); return nil })
		<-time.After(30 * time.Second)
		began := time.Now()
		wantNone(t, together(others, r.statusErr))
		wantWithin(t, began, 15*time.Second) // 30 servers and their NICs, 8 reads a second
		wantCode(t, <-done, codes.OK)
	})
}

// A read is shared by many calls, and made in a goroutine of its own, where a panic would end the process.
func TestAPanicInAReadHurtsNobodyElse(t *testing.T) {
	for name, path := range map[string]string{"a list of servers": "/servers", "a GET": "/servers/", "NICs": "/nics"} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second)) // so that there are GETs
			network := r.transport
			var reads atomic.Int32
			r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
				isGet := path == "/servers/" && strings.Contains(request.URL.Path, path) &&
					!strings.HasSuffix(request.URL.Path, "/nics")
				if request.Method == http.MethodGet && (isGet || strings.HasSuffix(request.URL.Path, path)) && reads.Add(1) == 3 {
					panic("a bug")
				}
				return network.RoundTrip(request)
			})
			r.restart()
			all := machines(8)
			for i, err := range together(all, r.createErr) {
				if err == nil {
					continue
				}
				if reason := reasonOf(err); reason != provider.ReasonDriverBug {
					t.Errorf("%s is told %v", all[i].Name, err)
				}
			}
			if reads.Load() < 3 {
				t.Errorf("%d reads: there was no panic", reads.Load())
			}
			wantNone(t, together(all, r.createErr))
			if got := len(r.cloud.Servers()); got != len(all) {
				t.Errorf("%d servers for %d machines", got, len(all))
			}
		})
	}
}
