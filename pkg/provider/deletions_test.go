// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The outcome of a deletion, and of what belongs to it, in the rows of README.md: a Machine goes only once all of its
// servers are gone, and at once then.
func TestDeletions(t *testing.T) {
	lag := world{iaasmock.WithListLag(25 * time.Second)}
	const soon = deleteDuration + 4*time.Second
	byNode := func(id string) string { return "stackit://" + id }
	byOpenStack := func(id string) string { return "openstack:///RegionOne/" + id }
	byName := func(string) string { return "" }
	conflict, forbidden := fault{Status: http.StatusConflict}, fault{Status: http.StatusForbidden}
	unavailable, hangs := fault{Status: http.StatusServiceUnavailable}, fault{NeverGone: true}
	runSituations(t, map[string]situation{
		// Any other answer than NotFound would give the Machine its node label before CreateMachine has looked.
		"2: the status of a Machine without a ProviderID, its server boots": {
			before: booting, call: asksForStatus, reason: provider.ReasonNoServer, left: 1, calls: none},
		"2: the same, it runs": {before: func(r *rig, _ made) { r.makeRunning("m1") }, call: asksForStatus,
			reason: provider.ReasonNoServer, left: 1, calls: none},
		// Without a target cluster the manager never asks for the addresses again.
		"2: a status without an address": {before: running, faults: ofNICs(fault{Status: 200, Body: `{"items":[]}`}),
			call: asksForStatus, reason: provider.ReasonNotReady, left: 1},
		"2: a status while NICs cannot be read": {before: running, faults: ofNICs(unavailable), call: asksForStatus,
			reason: provider.ReasonTimedOut, left: 1},
		"2: a status while NICs may not be read": {before: running, faults: ofNICs(forbidden), call: asksForStatus,
			reason: provider.ReasonNoPermission, left: 1},
		"4a: nothing was ever requested": {world: lag, call: removes, within: time.Second},
		"4a: a POST is under way": {world: lag, before: func(r *rig, m made) {
			r.cloud.Inject(posts(fault{Count: 1, Delay: 10 * time.Second}))
			r.startCreate(m)
			<-time.After(time.Second)
		}, call: removesUntilOK},
		"4a: a POST's answer was lost": {world: lag, before: created(lost), call: removesUntilOK},
		"4a: its answer was lost, the Machine has a ProviderID": {world: lag, before: func(r *rig, m made) {
			deletedByHand(r, m)
			r.cloud.Inject(posts(fault{Count: 1, Delay: 30 * time.Second, DropAfter: true}))
			r.startCreate(m)
			<-time.After(time.Minute) // it is sure first that the one in the ProviderID is gone
		}, call: removesUntilOK},
		"4a: its sidecar was killed": {world: lag, before: succeeded(booting), call: removesUntilOK},
		"4a: its sidecar was killed, another server is there": {world: lag, before: func(r *rig, _ made) {
			r.makeRunning("m1")
			<-time.After(30 * time.Second)
			r.makeServer("m1", nil)
			r.restartNow()
		}, call: removesUntilOK},
		"4a: its sidecar was killed, the Machine has a ProviderID": {world: lag, before: func(r *rig, m made) {
			deletedByHand(r, m)
			r.makeServer("m1", nil)
			r.restartNow()
		}, call: removesUntilOK},
		"5: a refused POST is no doubt":            {before: created(refused), call: removes, within: 2 * time.Second},
		"10: by its ID":                            {before: with2(iaasmock.StatusActive, providerIDOf), call: removes},
		"10: by the Node's ID":                     {before: with2(iaasmock.StatusActive, byNode), call: removes},
		"10: by OpenStack's ID":                    {before: with2(iaasmock.StatusActive, byOpenStack), call: removes},
		"10: by name":                              {before: with2(iaasmock.StatusActive, byName), call: again(removes, 0)},
		"10: while it boots":                       {before: with2(iaasmock.StatusCreating, byName), call: removes},
		"10: in ERROR":                             {before: with2(iaasmock.StatusError, byName), call: removes},
		"10: in a new status":                      {before: with2("SOMETHING-NEW", byName), call: removes},
		"10: our own server, told soon":            {before: running, call: removes, within: soon},
		"10: our own, which no list shows yet":     {world: lag, before: created(), call: removes, within: soon},
		"10: deleted by another's hand, told soon": {before: going(), call: removes, within: soon},
		"10: a NIC and a volume that were only attached stay": attached(func(spec map[string]any) {
			spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
			spec["volumes"] = []any{iaasmock.DefaultVolumeID}
		}),
		"10: a volume that it boots from stays": attached(func(spec map[string]any) {
			delete(spec, "imageId")
			spec["bootVolume"] = map[string]any{"source": map[string]any{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
		}),
		"11: deleted by hand": {before: deletedByHand, call: removes, within: 20 * time.Second},
		"11: deleted by hand, its status": {
			before: deletedByHand, call: asksForStatus, reason: provider.ReasonNoServer, calls: 1},
		"11: a DELETE and a GET answered 404 by mistake": {
			before: running, faults: []fault{once(gets(notFound)), once(deletes(notFound))}, call: removes},
		"11: the same of a server that no list shows": {
			world: lag, before: created(), faults: []fault{once(gets(notFound)), once(deletes(notFound))}, call: removes},
		"11: a gateway's 404 proves nothing": {
			before: running, faults: foreign404(page(404)), call: removes, reason: provider.ReasonTimedOut, left: 1},
		"11: nor does an empty one": {
			before: running, faults: foreign404(fault{Status: 404, Body: " "}), call: removes,
			reason: provider.ReasonTimedOut, left: 1},
		"11: nor one in another form": {
			before: running, faults: foreign404(fault{Status: 404, Body: `{"status":404,"message":"No message available"}`}),
			call: removes, reason: provider.ReasonTimedOut, left: 1},
		"11: nor one about the project": {
			before: running, faults: foreign404(fault{Status: 404, Body: `{"code":404,"msg":"project not found"}`}),
			call: removes, reason: provider.ReasonTimedOut, left: 1},
		"11: nor a 403 beside empty lists, as of an account that lost its role": {
			before: succeeded(running), faults: []fault{gets(forbidden), lists(fault{EmptyList: true})}, call: removes,
			reason: provider.ReasonNoPermission, left: 1},
		"17: it ends in ERROR twice": {before: running, call: removes, within: time.Minute,
			faults: []fault{deletes(fault{Count: 2, FinalStatus: "ERROR"})}},
		"17: a DELETE is answered 404": {
			before: running, faults: []fault{once(deletes(notFound))}, call: removes, within: 15 * time.Second},
		"17: it is answered 409 while another's goes on": {
			before: going(), faults: []fault{deletes(conflict)}, call: removes, within: soon, calls: 6},
		"17: 409 for a moment": {before: running, call: removes, within: 30 * time.Second,
			faults: []fault{deletes(fault{Status: 409, Duration: 5 * time.Second})}},
		"17: 403 for a moment": {before: running, call: removes, within: 30 * time.Second,
			faults: []fault{deletes(fault{Status: 403, Duration: 5 * time.Second})},
			then:   func(r *rig, _ made) { r.wantCalls("DeleteServer", 2) }},
		"17: 503 for a minute": {before: running, call: removes, within: 2 * time.Minute,
			faults: []fault{deletes(fault{Status: 503, Duration: time.Minute})}},
		"17: 403 of one of two for good": {before: func(r *rig, _ made) {
			r.cloud.Inject(deletes(fault{Server: r.makeServer("m1", nil), Status: http.StatusForbidden}))
			r.makeServer("m1", nil)
		}, call: removes, reason: provider.ReasonNoPermission, left: 1, within: time.Minute},
		"17: a page is no acceptance": {
			before: running, faults: []fault{once(deletes(page(200)))}, call: removes, within: 30 * time.Second},
		"17: nor is another JSON": {before: running, call: removes, within: 30 * time.Second,
			faults: []fault{deletes(fault{Count: 1, Status: 200, Body: `{"message":"maintenance"}`})}},
		"17: no effect once": {
			before: running, faults: []fault{once(noEffect)}, call: removes, within: time.Minute},
		"17: no effect twice": {
			before: running, faults: []fault{noEffect}, call: removes, reason: provider.ReasonServerBusy, left: 1,
			within: time.Minute, then: func(r *rig, _ made) { r.wantCalls("DeleteServer", 2) }},
		"17: DELETING for long": {
			before: running, faults: []fault{once(deletes(hangs))}, call: removes, within: 3 * time.Minute,
			then: func(r *rig, _ made) { r.wantCalls("DeleteServer", 2) }},
		"17: one of two hangs in DELETING": {
			before: with2(iaasmock.StatusActive, byName), faults: []fault{once(deletes(hangs))}, call: removes,
			within: 3 * time.Minute, then: func(r *rig, _ made) { r.wantCalls("DeleteServer", 3) }},
		"19: an orphan": {before: running, call: collects, left: 1, calls: 2},
		"19: an orphan's DELETE hangs": {before: running, faults: []fault{deletes(fault{Delay: time.Hour})},
			call: collects, reason: provider.ReasonTimedOut, left: 1, within: 6 * time.Second},
		"19: an orphan's DELETE is answered by a page": {before: running, faults: []fault{deletes(page(200))},
			call: collects, reason: provider.ReasonAPIFailed, left: 1},
		"19: an orphan cannot be read": {before: running, faults: []fault{gets(unavailable)},
			call: collects, reason: provider.ReasonAPIFailed, left: 1},
		"19: an orphan, but a gateway's 404": {before: running, faults: []fault{gets(page(404))},
			call: collects, reason: provider.ReasonAPIFailed, left: 1},
		"19: another server of a Machine that is being created": {world: lag, before: func(r *rig, m made) {
			created()(r, m)
			r.own = r.onlyServer().ID
		}, call: func(r *rig, m made) error {
			r.mustDelete(withID(machine("m1"), providerIDOf(r.makeServer("m1", nil))))
			return creates(r, m)
		}, left: 1},
		"19: a label edited by hand costs no server": {before: func(r *rig, m made) {
			created()(r, m)
			r.own = r.onlyServer().ID
			r.relabel(r.own, map[string]any{provider.StackitMachineLabel: "m2"})
		}, call: func(r *rig, _ made) error {
			if name := r.list()[providerIDOf(r.own)]; name != "m2" {
				r.t.Errorf("ListMachines lists it as %q", name)
			}
			return r.delete(orphan("m2", r.own))
		}, reason: provider.ReasonNotOurs, left: 1, then: func(r *rig, _ made) {
			r.relabel(r.own, map[string]any{provider.StackitMachineLabel: "m1"})
		}},
		"21: lists fail: the server in the ProviderID goes first": firstByID(lists(unavailable)),
		"21: lists never answer: the same":                        firstByID(lists(fault{NeverAnswers: true, Status: 504})),
		"21: a GET fails": {
			before: running, faults: []fault{once(gets(unavailable))}, call: removes, within: 20 * time.Second},
		"21: several connections are reset": {
			before: running, faults: []fault{gets(fault{DropBefore: true, Count: 9})}, call: removes},
		"27: another's project": {before: func(r *rig, m made) {
			m.Spec.ProviderID = "stackit://" + iaasmock.SecondProjectID + "/" + r.makeServer("m1", nil)
		}, call: func(r *rig, m made) error {
			defer func() { m.Spec.ProviderID = "" }()
			return r.remove(m)
		}, reason: provider.ReasonInvalidInput, left: 1, calls: none},
		"27: neither a ProviderID nor a deletionTimestamp": {before: booting, call: (*rig).delete,
			reason: provider.ReasonInvalidInput, left: 1, calls: none},
	}, 0)
}

// with2: the Machine has two servers, one in this state; its ProviderID is what id makes of that.
func with2(state string, id func(serverID string) string) func(*rig, made) {
	return func(r *rig, m made) {
		first := r.makeServer("m1", nil)
		r.setStatus(first, state, "")
		r.makeServer("m1", nil)
		m.Spec.ProviderID = id(first)
	}
}

// attached: the class names what its server has, and only that is left of it.
func attached(change func(spec map[string]any)) situation {
	return situation{before: func(r *rig, m made) {
		r.setSpec(change)
		created()(r, m)
	}, call: removes, then: func(r *rig, _ made) {
		catalogue := iaasmock.DefaultCatalogue()
		if len(r.cloud.NICs()) != len(catalogue.NICs) || len(r.cloud.Volumes()) != len(catalogue.Volumes) {
			r.t.Errorf("left are %+v and %+v", r.cloud.NICs(), r.cloud.Volumes())
		}
	}}
}

// ofNICs is a fault of all reads of NICs.
func ofNICs(f fault) []fault {
	own, all := f, f
	own.Operation, all.Operation = "ListServerNICs", "ListNics"
	return []fault{own, all}
}

// going: somebody has just asked for the deletion of the Machine's server.
func going() func(*rig, made) {
	return func(r *rig, m made) {
		running(r, m)
		r.deleteByHand(serverOf(m))
	}
}

// foreign404 answers GETs and DELETEs so for good, and lists are empty.
func foreign404(answer fault) []fault {
	return []fault{gets(answer), deletes(answer), lists(fault{EmptyList: true})}
}

// firstByID: lists fail for 2 minutes. The server in the ProviderID goes meanwhile, the other one after that.
func firstByID(lists fault) situation {
	lists.Duration = 2 * time.Minute
	return situation{before: func(r *rig, m made) {
		running(r, m)
		r.makeServer("m1", nil)
		time.AfterFunc(30*time.Second, func() {
			if server, ok := r.cloud.Server(serverOf(m)); ok && server.Status != iaasmock.StatusDeleting {
				r.t.Errorf("the server is %s after 30 s", server.Status)
			}
		})
	}, faults: []fault{lists}, call: removesUntilOK, within: 3 * time.Minute}
}

// The manager deletes orphans one after the other: one that is stuck blocks no others.
func TestOrphansHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithDeleteDuration(40*time.Second))
		for i := range 20 {
			r.makeServer(fmt.Sprint("orphan-", i), nil)
		}
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: "orphan-3", Count: 1, NeverGone: true})
		run := func() (listed int) {
			began, found := time.Now(), r.list()
			for providerID, name := range found {
				r.mustDelete(withID(orphan(name, ""), providerID))
			}
			wantWithin(t, began, 10*time.Second)
			return len(found)
		}
		r.cloud.ResetCalls()
		run()
		counts := r.cloud.CallCounts()
		if calls := counts["GetServer"] + counts["DeleteServer"]; calls > 40 {
			t.Errorf("%d calls, want at most 40: %v", calls, counts)
		}
		<-time.After(time.Minute)
		if left := r.onlyServer(); left.Name != "orphan-3" || left.Status != iaasmock.StatusDeleting || run() != 1 {
			t.Errorf("%s is %s, want orphan-3 stuck, and listed", left.Name, left.Status)
		}
		r.wantSeries(metricOrphans, map[string]float64{"accepted": 20, "refused": 0}) // the stuck one was asked for twice
		<-time.After(time.Minute)
		r.wantNothingLeft()
	})
}

// failPOSTs lets POSTs of servers fail before anything is written, while the result is true.
func (r *rig) failPOSTs(err error) *atomic.Bool {
	fails, network := new(atomic.Bool), r.transport
	r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if fails.Load() && request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/servers") {
			return nil, err
		}
		return network.RoundTrip(request)
	})
	r.restart()
	return fails
}
