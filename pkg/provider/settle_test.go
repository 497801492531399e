// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

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

// The server is made, and reading the answer panics long after the request was claimed.
func TestAPanicInTheRequestIsLikeALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithListLag(20*time.Second))
		network, panicked := r.transport, false
		r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := network.RoundTrip(request)
			if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/servers") && !panicked {
				panicked = true
				_ = response.Body.Close()
				panic("cannot read this")
			}
			return response, err
		})
		r.restart()
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: 25 * time.Second})
		wantCode(t, r.createErr(machine("m1")), codes.Internal)
		r.mustCreate(machine("m1"))
		r.onlyServer()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// How long after the first call a second POST is sent. What surely made nothing is repeated at once. Where the
// answer is lost no second one is sent before an accepted one would have shown, and then by the manager's next
// call; a POST that was given up after its attempt's time may be accepted then.
func TestWhenAPOSTIsRepeated(t *testing.T) {
	type fault = iaasmock.Fault
	const settle, late, never = provider.DefaultSettle, 20 * time.Second, -1
	for name, row := range map[string]struct {
		fault fault
		want  codes.Code
		after time.Duration
	}{
		"it was refused":                   {fault{Status: 422}, codes.InvalidArgument, 0},
		"it was lost":                      {fault{DropBefore: true}, codes.Unavailable, settle},
		"it was lost, and the next one":    {fault{DropBefore: true, Count: 2}, codes.Unavailable, 2 * settle},
		"it was given up":                  {fault{DropBefore: true, Delay: late}, codes.Unavailable, settle + late},
		"its answer was lost":              {fault{DropAfter: true}, codes.Unavailable, never},
		"500 although the server was made": {fault{Executed: true, Status: 500}, codes.Unavailable, never},
		"a gateway gave up, it was made":   {fault{Executed: true, Status: 504, Body: "<html>"}, codes.Unavailable, never},
		"201 without a UUID, it was made":  {fault{Status: 201, Body: someServer, Executed: true}, codes.Unavailable, never},
		"201 without a UUID, it was not":   {fault{Status: 201, Body: someServer}, codes.Unavailable, settle},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second))
			row.fault.Operation, row.fault.Count = "CreateServer", max(row.fault.Count, 1)
			r.cloud.Inject(row.fault)
			began := time.Now()
			wantCode(t, r.createErr(machine("m1")), row.want)
			r.wantCalls("CreateServer", 1)
			r.mustCreateAsManager(machine("m1"))
			waited := r.onlyServer().CreatedAt.Sub(began)
			if row.after != never && (waited < row.after || waited > row.after+10*time.Second) {
				t.Errorf("a server was asked for again after %s, want %s and a little", waited, row.after)
			}
		})
	}
}

// someServer is an answer that names a server by an ID that is no UUID: none is read by it, and no ProviderID
// names one.
const someServer = `{"id":"server-1","name":"m1","machineType":"c2i.2"}`

// A predecessor may have asked for a server that does not show yet.
func TestWhatAPredecessorAskedForIsWaitedFor(t *testing.T) {
	for name, hasFailed := range map[string]bool{"alone": false, "beside one that failed": true} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second), iaasmock.WithDeleteDuration(time.Minute))
			m := machine("m1")
			if hasFailed {
				r.setStatus(r.makeServer("m1", nil), iaasmock.StatusError, "broken")
				<-time.After(20 * time.Second)
			}
			made := r.makeServer("m1", nil)
			r.restartNow()
			if hasFailed {
				wantCode(t, r.createErr(m), codes.Internal)
			}
			r.mustCreate(m)
			<-time.After(time.Minute)
			r.wantOnly(made)
		})
	}
}

// The orphan collector deletes another server of a machine that is being created.
func TestDeleteMachineForTheOrphanCollectorKeepsTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithListLag(25*time.Second))
		r.mustCreate(machine("m1"))
		mine := r.onlyServer().ID
		orphan := r.makeServer("m1", nil)
		r.mustDelete(withID(machine("m1"), providerIDOf(orphan)))
		r.mustCreate(machine("m1"))
		r.wantOnly(mine)
	})
}

// Credentials that are refused while a call waits end it: the manager's next call has the Secret as it is then.
func TestRefusedCredentialsEndAWait(t *testing.T) {
	refused := iaasmock.Fault{Status: http.StatusUnauthorized}
	whileItWaits := func(r *rig, call func() error) error {
		time.AfterFunc(10*time.Second, func() {
			if err := r.cloud.RevokeServiceAccountKey(keys().first); err != nil {
				r.t.Error(err)
			}
		})
		err := call()
		if again := call(); reasonOf(again).Code() != codes.Unauthenticated {
			r.t.Errorf("a call that begins with them: %v", again)
		}
		return err
	}
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"while a server boots": func(r *rig, m *v1alpha1.Machine) error {
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
			return whileItWaits(r, func() error { return r.createErr(m) })
		},
		"while a creation looks for servers of a predecessor": func(r *rig, m *v1alpha1.Machine) error {
			r.restartNow()
			return whileItWaits(r, func() error { return r.createErr(m) })
		},
		"while a deletion looks for servers of a predecessor": func(r *rig, m *v1alpha1.Machine) error {
			r.restartNow()
			return whileItWaits(r, func() error { return r.remove(m) })
		},
		"at the POST after that": func(r *rig, m *v1alpha1.Machine) error {
			r.restartNow()
			refused.Operation = "CreateServer"
			r.cloud.Inject(refused)
			return r.createErr(m)
		},
		"at the second DELETE": func(r *rig, m *v1alpha1.Machine) error {
			r.mustCreate(m)
			refused.Operation = "DeleteServer"
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, FinalStatus: iaasmock.StatusError})
			r.cloud.Inject(refused)
			return r.remove(m)
		},
		"at the DELETE of a server that shows late": func(r *rig, m *v1alpha1.Machine) error {
			r.makeServer("m1", nil)
			<-time.After(25 * time.Second)
			r.makeServer("m1", nil)
			r.restartNow()
			refused.Operation = "DeleteServer"
			refused.Match = func(*http.Request) bool { return r.cloud.CallCounts()["DeleteServer"] > 0 }
			r.cloud.Inject(refused)
			return r.remove(m)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second))
			m := machine("m1")
			wantCode(t, call(r, m), codes.Unauthenticated)
		})
	}
	bubble(t, "the call began so", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusUnauthorized})
		wantCode(t, r.createErr(machine("m1")), codes.Unauthenticated)
	})
}

// A Machine counts as younger than the process only with 10 s to spare: the API server's clock may be
// ahead of ours.
func TestCreateMachineWaitsOnlyForMachinesThatMayBeOlder(t *testing.T) {
	const settle = provider.DefaultSettle
	for name, row := range map[string]struct {
		createdAfter, least, most time.Duration
		// projectLists is how many lists of the whole project there are: nothing else shows a server without
		// labels.
		projectLists int
	}{
		"created before the process led":      {-time.Minute, settle, settle + time.Second, 1},
		"created 5 s after it began to lead":  {5 * time.Second, settle, settle + 5*time.Second, 1},
		"created 11 s after it began to lead": {11 * time.Second, 0, time.Second, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.restartNow()
			leads := time.Now()
			m := machine("m1")
			m.CreationTimestamp = metav1.NewTime(leads.Add(row.createdAfter))
			r.mustCreate(m)
			if waited := r.onlyServer().CreatedAt.Sub(leads); waited < row.least || waited > row.most {
				t.Errorf("the server was asked for %s after the process began to lead, want %s to %s", waited, row.least, row.most)
			}
			projectLists := 0
			for _, call := range r.cloud.Calls() {
				if call.Operation == "ListServers" && !call.Query.Has("label_selector") {
					projectLists++
				}
			}
			if projectLists != row.projectLists {
				t.Errorf("%d lists of the whole project, want %d", projectLists, row.projectLists)
			}
		})
	}
}
