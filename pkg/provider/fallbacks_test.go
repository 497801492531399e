// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// Every event of a class makes the manager call for all of its Machines: a class that is full is not asked for again
// for a minute, unless it is corrected. ResourceExhausted is the only code that lets the autoscaler try another pool.
func TestExhaustedClasses(t *testing.T) {
	full := func(faults ...fault) func(*rig, made) { // as another Machine has found out
		return func(r *rig, _ made) { created(faults...)(r, machine("m0")) }
	}
	spec := func(key string, value any) func(map[string]any) {
		return func(spec map[string]any) { spec[key] = value }
	}
	then := func(before func(*rig, made), next func(*rig)) func(*rig, made) {
		return func(r *rig, m made) { before(r, m); next(r) }
	}
	aMinute := func(*rig) { <-time.After(time.Minute) }
	broken := inError("Unexpected vif_type=binding_failed")
	runSituations(t, map[string]situation{
		"9: the quota is used up": {before: full(noQuota), call: creates, reason: provider.ReasonQuotaExceeded, calls: none},
		"9: the words come late in a long answer": {
			faults: []fault{inError(strings.Repeat("x", 5000) + " quota exceeded")},
			call:   creates, reason: provider.ReasonQuotaExceeded},
		"9: the words are in userData, and are not shown": {before: func(r *rig, _ made) {
			r.secret.Data["userData"] = []byte("Quota exceeded for 4 cores")
		}, faults: []fault{inError("Quota exceeded for 4 cores")}, call: creates, reason: provider.ReasonQuotaExceeded},
		"9: the same Machine comes again": {
			before: created(noQuota), call: creates, reason: provider.ReasonQuotaExceeded, calls: none},
		"9: no host": {
			before: full(once(inError(noHost))), call: creates, reason: provider.ReasonNoCapacity, calls: none},
		"9: no such machine type": {before: func(r *rig, m made) {
			r.setSpec(spec("machineType", "c9i.999"))
			full()(r, m)
		}, call: creates, reason: provider.ReasonUnknownMachineType, calls: none},
		"9: a minute later": {before: then(full(noQuota), aMinute), call: creates, left: 1},
		"9: the class was corrected": {before: then(full(noQuota), func(r *rig) {
			r.setSpec(spec("machineType", "t1.1"))
		}), call: creates, left: 1},
		"9: a POST in doubt is looked after": {before: func(r *rig, m made) {
			created(lost)(r, m)
			full(noQuota)(r, m)
		}, call: createsUntilOK, left: 1},
		"9: a Machine that waits after a failover is told, too": {before: func(r *rig, _ made) {
			r.restartNow()
			time.AfterFunc(20*time.Second, func() { created(noQuota)(r, machine("m0")) })
		}, call: creates, reason: provider.ReasonQuotaExceeded,
			then: func(r *rig, _ made) { r.wantCalls("CreateServer", 1) }},
		"9: all servers end in ERROR": {
			before: full(broken), call: creates, reason: provider.ReasonServersFail},
		"9: one ran in between": {before: then(full(once(broken)), func(r *rig) {
			r.mustCreate(machine("m2"))
			r.mustRemove(machine("m2"))
		}), faults: []fault{broken}, call: creates, reason: provider.ReasonServerFailed},
		"9: of a class that was corrected": {before: then(full(broken), func(r *rig) {
			r.setSpec(spec("metadata", map[string]any{"corrected": "yes"}))
		}), call: creates, reason: provider.ReasonServerFailed},
	}, time.Minute)
}

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

// What is full is known at once, or once the server has ended in ERROR: the manager's next calls try the other choices.
func TestFallsBackWhereThereIsNoCapacity(t *testing.T) {
	answered := fault{Status: http.StatusInternalServerError, Body: `{"code":500,"msg":"` + noHost + `"}`}
	unanswered := fault{FinalStatus: full.FinalStatus, ErrorMessage: noHost, DropAfter: true}
	one, two := []string{first}, []string{first, second}
	toSecond, toThird := []string{first, second}, []string{first, second, third}
	for name, row := range map[string]struct {
		machineType string
		fault       fault
		boot        time.Duration
		full, posts []string
	}{
		"nothing is full":               {"c2i.2", full, bootDuration, nil, one},
		"the first, at once":            {"c2i.2", full, time.Millisecond, one, toSecond},
		"the first, after a minute":     {"c2i.2", full, time.Minute, one, toSecond},
		"the first, answered":           {"c2i.2", answered, bootDuration, one, toSecond},
		"the first, its answer is lost": {"c2i.2", unanswered, bootDuration, one, toSecond},
		"two, at once":                  {"c2i.2", full, time.Millisecond, two, toThird},
		"two, after a minute":           {"c2i.2", full, time.Minute, two, toThird},
		"two, answered":                 {"c2i.2", answered, bootDuration, two, toThird},
		"the second, which nobody asks": {"c2i.2", full, bootDuration, []string{second}, one},
		"the first does not exist":      {"c9i.999", full, bootDuration, nil, []string{"c9i.999 in eu01-1", second}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newChoosing(t, iaasmock.WithBootDuration(row.boot))
			r.setSpec(func(spec map[string]any) { threeChoices(spec); spec["machineType"] = row.machineType })
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
	for want, fault := range map[provider.Reason]fault{
		provider.ReasonQuotaExceeded: noQuota, provider.ReasonServerFailed: once(inError("Image is corrupt")),
	} {
		bubble(t, string(want), func(t *testing.T) {
			r := newChoosing(t)
			r.cloud.Inject(fault)
			wantReason(t, r.createErr(machine("m1")), want)
			<-time.After(time.Minute)
			r.mustCreateAsManager(machine("m1"))
			r.wantPosts(first, first)
		})
	}
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

// All Machines may be under way before the first of them knows; no more than these fail. Of POSTs that are answered,
// half of the runs take 1.5 minutes, one in fifty more than 4: those that wait for their turn keep their choice, and
// each that fails doubles the pause.
func TestFiftyMachinesFallBackTogether(t *testing.T) {
	for name, row := range map[string]struct {
		fault  fault
		within time.Duration
	}{
		"in ERROR, after the boot": {full, 2 * time.Minute},
		"answered with 500":        {fault{Status: 500, Body: `{"code":500,"msg":"` + noHost + `"}`}, 10 * time.Minute},
		"answered with 409":        {fault{Status: 409, Body: `{"code":409,"msg":"` + noHost + `"}`}, 10 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r, all := newChoosing(t), machines(many(50))
			r.fill(row.fault, first, second)
			began := time.Now()
			wantNone(t, together(all, func(m made) error { return createsUntilOK(r.rig, m) }))
			wantWithin(t, began, row.within)
			if failed := len(r.posts) - len(all); failed > 2*len(all) {
				t.Errorf("%d POSTs failed, want at most %d", failed, 2*len(all))
			}
			<-time.After(time.Minute)
			if left := r.cloud.Servers(); len(left) != len(all) {
				t.Errorf("%d servers, want %d", len(left), len(all))
			}
		})
	}
}

// The new process learns from the server that it finds which choice has failed, also where STACKIT chose the zone.
func TestFallsBackAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChoosing(t, iaasmock.WithBootDuration(time.Minute))
		r.setSpec(func(spec map[string]any) { threeChoices(spec); spec["availabilityZone"] = "" })
		r.cloud.Inject(posts(fault{MachineType: "c2i.2", FinalStatus: full.FinalStatus, ErrorMessage: noHost}))
		m := machine("m1")
		wantReason(t, r.createFor(m, 30*time.Second), provider.ReasonTimedOut) // the server boots, and the process ends
		r.restartNow()
		err := r.createErr(m)
		wantCode(t, err, codes.Unavailable)
		wantSaid(t, err.Error(), "c2i.2 in eu01-m, chosen by STACKIT: the class sets no availabilityZone; next: t1.1")
		r.mustCreateAsManager(m)
		<-time.After(time.Minute)
		if server := r.onlyServer(); server.MachineType != "t1.1" {
			t.Errorf("%+v", server)
		}
	})
}
