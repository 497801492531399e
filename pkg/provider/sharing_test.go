// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Calls at a time: what they share of reads, what a shared list proves, and what the process remembers between calls.

// yieldingClock lets others run whenever the driver asks for the time, as nextChoice does for an exhausted class,
// between a list and the claim of a POST.
type yieldingClock struct{ clock.RealClock }

func (c yieldingClock) Now() time.Time {
	for range 100 {
		runtime.Gosched()
	}
	return c.RealClock.Now()
}

// One list says "none" to all; nothing but the claim stands between their POSTs.
func TestCallsAtATimeMakeOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithLatency(50*time.Millisecond, 50*time.Millisecond))
		r.restart(provider.WithClock(yieldingClock{}))
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusForbidden, Body: quotaExceeded})
		r.class.Name = "class-b"
		wantCode(t, r.createErr(machine("m3")), codes.ResourceExhausted) // nextChoice has something to look at
		r.class.Name = "class-a"
		r.cloud.ResetCalls()
		errs := make([]error, 8) // more than are read singly
		var calls sync.WaitGroup
		// The next read waits for its turn.
		calls.Go(func() { _, _ = r.status(withID(machine("m2"), providerIDOf(someServerID))) })
		synctest.Wait()
		for i := range errs {
			calls.Go(func() { _, errs[i] = r.create(machine("m1")) })
		}
		calls.Wait()
		r.onlyServer()
		r.wantCalls("CreateServer", 1)
		for _, err := range errs {
			if err != nil {
				wantCode(t, err, codes.Aborted) // comes back at once, and adopts
			}
		}
	})
}

// One list's answer takes long. Meanwhile another call lists and POSTs: the first list began before that, so that its
// "none" is no reason for a second POST.
func TestALookUpFromBeforeAPOSTAllowsNoOther(t *testing.T) {
	for name, post := range map[string]iaasmock.Fault{
		"the POST is answered":       {AnswerDelay: time.Second},
		"the POST is under way":      {AnswerDelay: 20 * time.Second},
		"the POST's answer is lost":  {DropAfter: true},
		"it is carried out late":     {DropAfter: true, Delay: 5 * time.Second},
		"the POST is answered a 500": {Executed: true, Status: http.StatusInternalServerError},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.list() // fetches the token
			m := machine("m1")
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Count: 1, AnswerDelay: 12 * time.Second})
			post.Operation, post.Count = "CreateServer", 1
			r.cloud.Inject(post)
			first := r.startCreate(m)
			<-time.After(time.Second)
			second := r.startCreate(m)
			for _, err := range []error{<-first, <-second} {
				if code := reasonOf(err).Code(); err != nil && code != codes.Aborted && code != codes.Unavailable {
					t.Errorf("the manager is told %v", err)
				}
			}
			r.mustCreateAsManager(m)
			r.onlyServer()
			r.wantCalls("CreateServer", 1)
		})
	}
}

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
		bubble(t, operation, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(time.Minute))
			r.cloud.Inject(fault{Operation: operation, AnswerDelay: 2 * time.Second})
			began := time.Now()
			stay, leave := machines(8)[:4], machines(8)[4:]
			left := start(func() error {
				for i, err := range together(leave, func(m made) error {
					return r.createFor(m, 13500*time.Millisecond+time.Duration(m.Name[8]-'4')*2*time.Second)
				}) {
					if reasonOf(err) != provider.ReasonTimedOut {
						t.Errorf("%s: %v", leave[i].Name, err)
					}
				}
				return nil
			})
			wantNone(t, together(stay, r.createErr))
			wantNone(t, []error{<-left})
			wantWithin(t, began, time.Minute+30*time.Second)
		})
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

// A shared read is made in a goroutine of its own, where a panic would end the process.
func TestAPanicInAReadHurtsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		network := r.transport
		var reads atomic.Int32
		r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/servers") && request.Method == http.MethodGet && reads.Add(1) == 3 {
				panic("a bug")
			}
			return network.RoundTrip(request)
		})
		r.restart()
		all := machines(8)
		for i, err := range together(all, r.createErr) {
			if reason := reasonOf(err); err != nil && reason != provider.ReasonDriverBug {
				t.Errorf("%s is told %v", all[i].Name, err)
			}
		}
		wantNone(t, together(all, r.createErr))
		if got := len(r.cloud.Servers()); got != len(all) || reads.Load() < 3 {
			t.Errorf("%d servers for %d machines, %d reads", got, len(all), reads.Load())
		}
	})
}

// sinceDelete is the time since the first DELETE of a server.
func (r *rig) sinceDelete() time.Duration {
	for _, call := range r.cloud.Calls() {
		if call.Operation == "DeleteServer" {
			return time.Since(call.StartedAt)
		}
	}
	return 0
}

// Servers hang in DELETING after our DELETE. Whatever their reads show meanwhile, the manager is not told that they are
// gone: six calls share lists.
func TestAServerThatHangsInDeletingIsNotGone(t *testing.T) {
	cutOff, empty := lists(fault{Status: http.StatusOK, Body: othersOnly}), lists(fault{EmptyList: true})
	since := func(r *rig, after time.Duration, f fault) fault {
		f.Match = func(*http.Request) bool { return r.sinceDelete() >= after }
		return f
	}
	for name, faults := range map[string]func(r *rig) []fault{
		"lists show others, GETs show it":      func(*rig) []fault { return []fault{cutOff} },
		"lists are empty after they showed it": func(r *rig) []fault { return []fault{since(r, 5*time.Second, empty)} },
		"lists show others after a minute":     func(r *rig) []fault { return []fault{since(r, 62*time.Second, cutOff)} },
		"one list shows others": func(r *rig) []fault {
			once := since(r, 5*time.Second, cutOff)
			once.Count = 1
			return []fault{once}
		},
		"lists fail, GETs answer 403": func(r *rig) []fault {
			return []fault{lists(fault{Status: 503}), since(r, 2*time.Second, gets(fault{Status: 403}))}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			all := append(machines(6), machine("stays"))
			wantNone(t, together(all, r.createAndName))
			<-time.After(time.Minute)
			r.cloud.Inject(deletes(fault{NeverGone: true}))
			for _, fault := range faults(r) {
				r.cloud.Inject(fault)
			}
			for i, err := range together(all[:6], r.remove) {
				if err == nil {
					t.Errorf("the manager is told that the server of %s is gone", all[i].Name)
				}
			}
		})
	}
}

// While GETs fail, lists alone prove nothing to creations: they would make second servers.
func TestListsAloneEndNoCreation(t *testing.T) {
	for name, list := range map[string]fault{
		"they show others": {Status: http.StatusOK, Body: othersOnly}, "they are empty": {EmptyList: true},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(4*time.Minute))
			for _, fault := range []fault{lists(list), gets(fault{Status: http.StatusServiceUnavailable})} {
				fault.After, fault.Duration = time.Minute, 2*time.Minute
				r.cloud.Inject(fault)
			}
			wantNone(t, together(machines(8), r.createErr))
			r.wantCalls("CreateServer", 8)
		})
	}
}

// Servers are being deleted, which lists do not show yet: their Machines get others.
func TestAnOldListGivesNoMachineAServerThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithListLag(25*time.Second), iaasmock.WithDeleteDuration(time.Minute))
		all, going := machines(6), map[string]bool{}
		for _, m := range all {
			going[r.makeRunning(m.Name)] = true
		}
		<-time.After(time.Minute)
		for _, server := range r.cloud.Servers() {
			r.deleteByHand(server.ID)
		}
		wantNone(t, together(all, r.createAndName))
		for _, m := range all {
			if going[m.Spec.ProviderID] {
				t.Errorf("%s gets a server that is being deleted", m.Name)
			}
		}
	})
}

// InitializeMachine makes no call for a server that this process has seen complete: so it shows what is remembered.
func TestWhatIsRememberedEndsAnHourAfterItsLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m, other := machine("m1"), machine("m2")
		wantNone(t, []error{r.createAndName(m), r.createAndName(other)})
		for i, pause := range []time.Duration{50 * time.Minute, 50 * time.Minute, 50 * time.Minute, 65 * time.Minute} {
			<-time.After(pause)
			wantCode(t, r.statusErr(other), codes.OK) // what is old may be dropped with another Machine's call
			r.cloud.ResetCalls()
			wantCode(t, r.initErr(m), codes.OK)
			if isKnown := len(r.cloud.Calls()) == 0; isKnown != (i < 3) {
				t.Errorf("it is known after a pause of %s: %t", pause, isKnown)
			}
		}
	})
}
