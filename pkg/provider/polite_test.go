// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// How reads and writes share what the API allows, as STACKIT's gateway does it: 429 by source address, without a
// Retry-After.

func isRead(request *http.Request) bool { return request.Method == http.MethodGet }

// reads counts the GETs and lists since the last ResetCalls.
func (r *rig) reads() (count int) {
	for _, call := range r.cloud.Calls() {
		if call.Method == http.MethodGet {
			count++
		}
	}
	return count
}

// shownErrors is how many of the calls' Machines were ever shown an error; each call is made as the manager does it,
// until it succeeds.
func shownErrors(calls []func() error) int {
	var all sync.WaitGroup
	shown := make([]bool, len(calls))
	for i, call := range calls {
		all.Go(func() {
			for began := time.Now(); call() != nil; <-time.After(5 * time.Second) {
				if shown[i] = true; time.Since(began) > time.Hour {
					return
				}
			}
		})
	}
	all.Wait()
	count := 0
	for _, was := range shown {
		if was {
			count++
		}
	}
	return count
}

// Reads that are refused for long are few, whatever refuses them: of each status so many a minute at most.
func TestReadsThatAreRefusedForLongAreFew(t *testing.T) {
	for status, atMost := range map[int]float64{http.StatusTooManyRequests: 20, http.StatusUnauthorized: 20,
		http.StatusServiceUnavailable: 30} { // calls that end after 30 s, and come again
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			const outage = 10 * time.Minute
			r := newRig(t)
			r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Match: isRead, Status: status, Duration: outage})
			done := make(chan struct{})
			go func() {
				defer close(done)
				shownErrors(callsFor(machines(5), r.createErr))
			}()
			<-time.After(time.Minute)
			r.cloud.ResetCalls()
			<-time.After(outage - 2*time.Minute)
			if perMinute := float64(r.reads()) / 8; perMinute > atMost {
				t.Errorf("%.1f reads a minute, want at most %.0f", perMinute, atMost)
			} else {
				t.Logf("%.1f reads a minute", perMinute)
			}
			<-done
			if got := len(r.cloud.Servers()); got != 5 {
				t.Errorf("%d servers in the end", got)
			}
		})
	}
}

// A hundred sidecars of three Machines each share an API that takes 33 reads a second.
func TestAHerdOfSidecarsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sidecars := many(100)
		r := newRig(t, iaasmock.WithBootDuration(20*time.Second))
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Match: isRead, Status: http.StatusTooManyRequests,
			Rate: 33, Burst: 33})
		began := time.Now()
		var calls []func() error
		for i := range sidecars {
			own := r.sidecar(fmt.Sprint("shoot-", i))
			for j := range 3 {
				calls = append(calls, func() error { return own.createErr(machine(fmt.Sprintf("m-%d-%d", i, j))) })
			}
		}
		shown := shownErrors(calls)
		t.Logf("%d Machines within %s: %.1f reads each, %d shown an error", len(calls), time.Since(began),
			float64(r.reads())/float64(len(calls)), shown)
		if r.reads() > 20*len(calls) || shown > len(calls)/10 {
			t.Errorf("%d reads for %d Machines, of which %d are shown an error", r.reads(), len(calls), shown)
		}
	})
}

// sidecar is one more, for another cluster.
func (r *rig) sidecar(cluster string) *rig {
	own := *r
	own.restart()
	own.class = r.class.DeepCopy()
	own.setSpec(func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: cluster} })
	return &own
}

// One limit for all calls of a project: reads must not take it from the writes that they wait for, nor the reverse.
func TestReadsAndWritesShareALimit(t *testing.T) {
	limit := func(r *rig, perSecond float64) {
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusTooManyRequests,
			Rate: perSecond, Burst: 4})
	}
	bubble(t, "up, 2 calls a second", func(t *testing.T) { // 100 writes and a boot: 70 s at least
		r := newRig(t, iaasmock.WithBootDuration(20*time.Second))
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		limit(r, 2)
		began := time.Now()
		shown := shownErrors(callsFor(machines(many(50)), r.createErr))
		t.Logf("%s, %d Machines shown an error: %v", time.Since(began), shown, r.cloud.CallCounts())
		wantWithin(t, began, 150*time.Second)
	})
	bubble(t, "down, a call a second", func(t *testing.T) {
		r := newRig(t)
		all := machines(many(50))
		for _, m := range all {
			m.Spec.ProviderID = r.makeRunning(m.Name)
		}
		<-time.After(time.Minute)
		limit(r, 1)
		r.cloud.ResetCalls()
		began := time.Now()
		shown := shownErrors(callsFor(all, r.remove))
		t.Logf("%s, %d Machines shown an error: %v", time.Since(began), shown, r.cloud.CallCounts())
		wantWithin(t, began, 456*time.Second)
		r.wantNothingLeft()
	})
}

func callsFor(all []*v1alpha1.Machine, call func(*v1alpha1.Machine) error) (calls []func() error) {
	for _, m := range all {
		calls = append(calls, func() error { return call(m) })
	}
	return calls
}

// A moment at the beginning of a call is nobody's problem: an error stands in the Machine's status until its server has
// booted, and the manager's pauses after a refusal take minutes. The deletion of an orphan ends after 5 s.
func TestTheBeginningOfACallOutlastsFailures(t *testing.T) {
	const page = "<html><head><title>403 Forbidden</title></head></html>"
	for name, fault := range map[string]iaasmock.Fault{
		"a gateway without the key": {Operation: iaasmock.OperationIaaS, Status: http.StatusUnauthorized, Body: jwks,
			ContentType: "text/plain"},
		"401": {Operation: iaasmock.OperationIaaS, Status: http.StatusUnauthorized},
		"403": {Operation: iaasmock.OperationIaaS, Status: http.StatusForbidden},
		"a page": {Operation: iaasmock.OperationIaaS, Status: http.StatusOK, Body: page,
			ContentType: "text/html"},
		"a page of the token endpoint": {Operation: "Token", Status: http.StatusForbidden, Body: page,
			ContentType: "text/html"},
		"503":           {Operation: iaasmock.OperationIaaS, Status: http.StatusServiceUnavailable},
		"429":           {Operation: iaasmock.OperationIaaS, Status: http.StatusTooManyRequests},
		"no connection": {Operation: iaasmock.OperationIaaS, DropBefore: true},
		"a 404 about the region": {Operation: iaasmock.OperationIaaS, Status: http.StatusNotFound,
			Body: `{"code":404,"msg":"region not found"}`},
	} {
		for method, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
			"CreateMachine":     func(r *rig, _ *v1alpha1.Machine) error { return r.createErr(machine("m2")) },
			"InitializeMachine": (*rig).initErr, "GetMachineStatus": (*rig).statusErr, "DeleteMachine": (*rig).remove,
			"ListMachines": func(r *rig, _ *v1alpha1.Machine) error { return r.listErr() },
		} {
			bubble(t, name+", "+method, func(t *testing.T) {
				r := newRig(t)
				m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
				<-time.After(2 * time.Hour) // its token has expired, and nothing is remembered
				fault.Duration = 10 * time.Second
				r.cloud.Inject(fault)
				began := time.Now()
				if err := call(r, m); err != nil {
					t.Errorf("the manager is told %v", err)
				}
				wantWithin(t, began, bootDuration+35*time.Second)
			})
		}
	}
}

// What needs somebody to correct it is told at once: 500 Machines with a wrong key must not hold the workers.
func TestWhatIsWrongIsToldAtOnce(t *testing.T) {
	for name, refuse := range map[string]func(*rig){"the key is refused": refusals["the key is refused"],
		"no region": refusals["no region"]} {
		for method, call := range everyCall {
			bubble(t, name+", "+method, func(t *testing.T) {
				r := newRig(t)
				refuse(r)
				began := time.Now()
				_ = call(r)
				wantWithin(t, began, time.Second)
			})
		}
	}
}

// An account that may create servers, but not see any, must not fill a project, whichever Machines of the class ask.
func TestServersThatNoReadShowsAreFew(t *testing.T) {
	bubble(t, "the project looks empty", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{EmptyProject: true})
		wantReason(t, r.createErr(machine("m1")), provider.ReasonNotReady)
		gone := time.Now()
		for i := 2; time.Since(gone) < 10*time.Minute-time.Second; i++ {
			began := time.Now()
			wantReason(t, r.createErr(machine(fmt.Sprint("m", i))), provider.ReasonNotReady)
			wantWithin(t, began, time.Second)
			<-time.After(30 * time.Second)
		}
		r.wantCalls("CreateServer", 1)
		r.cloud.ClearFaults()
		r.class.Name = "class-b" // another class does not wait
		r.mustCreate(machine("other"))
		r.class.Name = "class-a"
		<-time.After(time.Until(gone.Add(10 * time.Minute)))
		wantNone(t, together(machines(5), r.createErr))
	})
	bubble(t, "one was shown, without labels, and is gone", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropLabels: true})
		done := r.startCreate(machine("m1"))
		<-time.After(10 * time.Second)
		r.removeServer(r.onlyServer().ID)
		if err := <-done; err == nil {
			t.Error("it has a server")
		}
		r.mustCreate(machine("m2"))
	})
}
