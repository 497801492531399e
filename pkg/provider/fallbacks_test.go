// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var full = iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: noHost}

const noHost = "No valid host was found. There are not enough hosts available."

// threeChoices lets the class fall back to another machine type, and then to another zone.
func threeChoices(spec map[string]any) {
	spec["machineType"], spec["availabilityZone"] = "c2i.2", "eu01-1"
	spec["fallbacks"] = []any{map[string]any{"machineType": "t1.1"}, map[string]any{"availabilityZone": "eu01-2"}}
}

const first, second, third = "c2i.2 in eu01-1", "t1.1 in eu01-1", "c2i.2 in eu01-2"

// choosing is a rig whose class has threeChoices, with all that it has asked for.
type choosing struct {
	*rig
	mu    sync.Mutex
	posts []string
}

func newChoosing(t *testing.T, options ...iaasmock.Option) *choosing {
	r := &choosing{rig: newRig(t, options...)}
	network := r.transport
	r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/servers") {
			var order struct{ MachineType, AvailabilityZone string }
			body, err := io.ReadAll(request.Body)
			if err = errors.Join(err, json.Unmarshal(body, &order)); err != nil {
				return nil, err
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			r.mu.Lock()
			r.posts = append(r.posts, order.MachineType+" in "+order.AvailabilityZone)
			r.mu.Unlock()
		}
		return network.RoundTrip(request)
	})
	r.restart()
	r.setSpec(threeChoices)
	return r
}

func (r *choosing) wantPosts(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.posts, want) {
		r.t.Errorf("POSTs for %q, want %q", r.posts, want)
	}
}

// fill lets the given choices have no capacity from now on: fault without what selects the calls.
func (r *choosing) fill(fault iaasmock.Fault, choices ...string) (empty func()) {
	var removes []func()
	for _, choice := range choices {
		fault.Operation = "CreateServer"
		fault.MachineType, fault.Zone, _ = strings.Cut(choice, " in ")
		removes = append(removes, r.cloud.Inject(fault))
	}
	return func() {
		for _, remove := range removes {
			remove()
		}
	}
}

// What is full is known at once, or once the server has ended in ERROR.
func TestFallsBackWhereThereIsNoCapacity(t *testing.T) {
	refused := iaasmock.Fault{Status: http.StatusInternalServerError, Body: `{"code":500,"msg":"` + noHost + `"}`}
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		boot  time.Duration
		full  []string
		posts []string
	}{
		"nothing is full":               {full, bootDuration, nil, []string{first}},
		"the first, at once":            {full, time.Millisecond, []string{first}, []string{first, second}},
		"the first, after 20 s":         {full, 20 * time.Second, []string{first}, []string{first, second}},
		"the first, after 60 s":         {full, time.Minute, []string{first}, []string{first, second}},
		"the first, answered":           {refused, bootDuration, []string{first}, []string{first, second}},
		"two, at once":                  {full, time.Millisecond, []string{first, second}, []string{first, second, third}},
		"two, after 20 s":               {full, 20 * time.Second, []string{first, second}, []string{first, second, third}},
		"two, after 60 s":               {full, time.Minute, []string{first, second}, []string{first, second, third}},
		"two, answered":                 {refused, bootDuration, []string{first, second}, []string{first, second, third}},
		"the second, which nobody asks": {full, bootDuration, []string{second}, []string{first}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t, iaasmock.WithBootDuration(row.boot))
			r.fill(row.fault, row.full...)
			r.mustCreateAsManager(machine("m1"))
			r.wantPosts(row.posts...)
			<-time.After(time.Minute) // what ended in ERROR is gone
			server := r.onlyServer()
			if last := row.posts[len(row.posts)-1]; server.MachineType+" in "+server.AvailabilityZone != last {
				t.Errorf("server %+v, want %s", server, last)
			}
			r.mustRemove(machine("m1"))
			r.wantNothingLeft()
		})
	}
}

// While a choice is left the manager is back within seconds; then the autoscaler tries another
// pool, and after a minute all choices count again.
func TestTheLastChoiceIsToldTheAutoscalerOnceARound(t *testing.T) {
	for name, boot := range map[string]time.Duration{"at once": time.Millisecond, "after a minute": time.Minute} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t, iaasmock.WithBootDuration(boot))
			empty := r.fill(full, first, second, third)
			m := machine("m1")
			for round := range 2 {
				last := first
				for _, next := range []string{second, third} {
					err := r.createErr(m)
					wantCode(t, err, codes.Unavailable)
					if want := "NoCapacity: " + last + "; next: " + next; !strings.Contains(err.Error(), want) {
						t.Errorf("round %d: %v, want %s", round, err, want)
					}
					last = next
					<-time.After(5 * time.Second)
				}
				err := r.createErr(m)
				wantCode(t, err, codes.ResourceExhausted)
				if want := "NoCapacity: " + third + ": "; !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
				<-time.After(time.Minute)
			}
			r.wantPosts(first, second, third, first, second, third)
			empty()
			r.mustCreateAsManager(m)
			r.wantPosts(first, second, third, first, second, third, first)
			<-time.After(time.Minute)
			r.onlyServer()
		})
	}
}

// A quota holds for all choices, and a server in ERROR for another reason would fail with any.
func TestOnlyLackOfCapacityFallsBack(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		code  codes.Code
	}{
		"quota, answered": {iaasmock.Fault{Status: http.StatusForbidden, Body: quotaExceeded}, codes.ResourceExhausted},
		"quota, in ERROR": {iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: "Quota exceeded for cores"},
			codes.ResourceExhausted},
		"ERROR in other words": {iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: "Image is corrupt"},
			codes.Internal},
		"a refusal": {
			iaasmock.Fault{Status: http.StatusBadRequest,
				Body: `{"code":400,"msg":"The affinity group policy is not supported"}`}, codes.InvalidArgument},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t)
			row.fault.Operation, row.fault.Count = "CreateServer", 1
			r.cloud.Inject(row.fault)
			wantCode(t, r.createErr(machine("m1")), row.code)
			<-time.After(time.Minute)
			r.mustCreateAsManager(machine("m1"))
			r.wantPosts(first, first)
		})
	}
}

// A machine type that the region lacks is no dead end.
func TestFallsBackFromAMachineTypeThatDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChoosing(t)
		r.setSpec(func(spec map[string]any) { threeChoices(spec); spec["machineType"] = "c9i.999" })
		err := r.createErr(machine("m1"))
		wantCode(t, err, codes.Unavailable)
		if want := "UnknownMachineType: c9i.999 in eu01-1; next: " + second; !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		r.mustCreateAsManager(machine("m1"))
		r.wantPosts("c9i.999 in eu01-1", second)
	})
}

// What one Machine has found out, others need not for ten minutes; then the first choice is asked for again.
func TestAFullChoiceIsKnownToTheClassForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChoosing(t, iaasmock.WithBootDuration(time.Millisecond))
		empty := r.fill(full, first)
		r.mustCreateAsManager(machine("m1"))
		r.mustCreateAsManager(machine("m2"))
		empty()
		r.mustCreateAsManager(machine("m3"))
		<-time.After(10 * time.Minute)
		r.mustCreateAsManager(machine("m4"))
		r.wantPosts(first, second, second, second, first)
	})
}

// All Machines may be under way before the first of them knows; no more than these fail.
func TestFiftyMachinesFallBackTogether(t *testing.T) {
	machines := many(50)
	answered := func(status int) iaasmock.Fault {
		return iaasmock.Fault{Status: status, Body: fmt.Sprintf(`{"code":%d,"msg":"%s"}`, status, noHost)}
	}
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		// most is how many POSTs may fail, within how long all Machines have to run.
		most   int
		within time.Duration
	}{
		"in ERROR, after the boot": {full, 2 * machines, 2 * time.Minute},
		// Half of the runs take 1.5 minutes, one in fifty more than 4: POSTs that wait for their turn keep their
		// choice, and each that fails doubles the pause.
		"answered with 500": {answered(http.StatusInternalServerError), 2 * machines, 10 * time.Minute},
		"answered with 409": {answered(http.StatusConflict), 2 * machines, 10 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t)
			r.fill(row.fault, first, second)
			began := time.Now()
			var calls sync.WaitGroup
			for i := range machines {
				calls.Go(func() {
					if _, err := r.createAsManager(machine(fmt.Sprintf("m%d", i))); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			took, failed := time.Since(began), len(r.posts)-machines
			t.Logf("%d POSTs failed, after %v all Machines run", failed, took)
			if failed > row.most || took > row.within {
				t.Errorf("want at most %d in %v", row.most, row.within)
			}
			<-time.After(time.Minute)
			if left := r.cloud.Servers(); len(left) != machines {
				t.Errorf("%d servers, want %d", len(left), machines)
			}
		})
	}
}

// The new process learns from the server that it finds which choice has failed.
func TestFallsBackAfterARestart(t *testing.T) {
	for name, row := range map[string]struct {
		zone, text string
	}{
		"a class with a zone":    {"eu01-1", first + "; next: " + second},
		"a class without a zone": {"", "c2i.2 in eu01-m, chosen by STACKIT: the class sets no availabilityZone; next: t1.1"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t, iaasmock.WithBootDuration(time.Minute))
			r.setSpec(func(spec map[string]any) { threeChoices(spec); spec["availabilityZone"] = row.zone })
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", MachineType: "c2i.2", FinalStatus: full.FinalStatus,
				ErrorMessage: noHost})
			m := machine("m1")
			ctx, crash := context.WithTimeout(t.Context(), 30*time.Second) // the server boots
			defer crash()
			_, err := r.driver.CreateMachine(ctx,
				&driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
			wantCode(t, err, codes.DeadlineExceeded)
			r.restartNow()
			err = r.createErr(m)
			wantCode(t, err, codes.Unavailable)
			if !strings.Contains(err.Error(), row.text) {
				t.Errorf("%v, want %s", err, row.text)
			}
			r.mustCreateAsManager(m)
			<-time.After(time.Minute)
			if server := r.onlyServer(); server.MachineType != "t1.1" {
				t.Errorf("%+v", server)
			}
		})
	}
}

// A server whose deletion is stuck uses up quota, so no third one is made beside two: the manager hears why.
func TestFallsBackBesideOneDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChoosing(t, iaasmock.WithBootDuration(time.Millisecond))
		r.fill(full, first, second)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true})
		for range 4 {
			err := r.createErr(machine("m1"))
			wantCode(t, err, codes.Unavailable)
			text := err.Error()
			if len(r.posts) == 2 && !strings.Contains(text, "still being deleted") && !strings.Contains(text, third) {
				t.Error(err)
			}
			<-time.After(5 * time.Second)
		}
		r.wantPosts(first, second)
		for _, server := range r.cloud.Servers() {
			r.removeServer(server.ID)
		}
		r.mustCreateAsManager(machine("m1"))
		r.wantPosts(first, second, third)
	})
}

// Without its answer the last POST tells its choice, also where the server looks like one of another choice.
func TestFallsBackAfterALostAnswer(t *testing.T) {
	cheap := map[string]any{"machineType": "t1.1"}
	for name, row := range map[string]struct {
		zone      string
		fallbacks []any
		posts     int
	}{
		"a class with a zone":              {"eu01-1", []any{cheap}, 2},
		"a class without a zone":           {"", []any{cheap}, 2},
		"a fallback to the cloud's choice": {"", []any{map[string]any{"availabilityZone": "eu01-m"}, cheap}, 3},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t)
			r.setSpec(func(spec map[string]any) { spec["availabilityZone"], spec["fallbacks"] = row.zone, row.fallbacks })
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", MachineType: "c2i.2", FinalStatus: full.FinalStatus,
				ErrorMessage: noHost, DropAfter: true})
			r.mustCreateAsManager(machine("m1"))
			<-time.After(time.Minute)
			if server := r.onlyServer(); server.MachineType != "t1.1" || len(r.posts) != row.posts {
				t.Errorf("%+v, after POSTs for %q", server, r.posts)
			}
		})
	}
}

// A class without fallbacks that was edited while its server boots is answered as ever.
func TestWithoutFallbacksNothingIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChoosing(t, iaasmock.WithBootDuration(2*time.Minute))
		one := func(machineType string) {
			r.setSpec(func(spec map[string]any) { spec["machineType"] = machineType })
		}
		one("c2i.2")
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", FinalStatus: full.FinalStatus, ErrorMessage: noHost})
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		m := machine("m1")
		request := &driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret}
		_, err := r.driver.CreateMachine(ctx, request)
		wantCode(t, err, codes.DeadlineExceeded)
		one("g2i.4")
		wantCode(t, r.createErr(m), codes.ResourceExhausted)
	})
}

// A known lack of capacity says nothing of the next choice's servers.
func TestAFallbackInErrorIsNoRowOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChoosing(t)
		r.fill(full, first)
		r.fill(iaasmock.Fault{FinalStatus: iaasmock.StatusError, ErrorMessage: "Image is corrupt"}, second)
		wantCode(t, r.createErr(machine("m1")), codes.Unavailable)
		<-time.After(5 * time.Second)
		wantCode(t, r.createErr(machine("m1")), codes.Internal)
	})
}
