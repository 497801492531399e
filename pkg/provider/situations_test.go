// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// situation is a row of README.md's table, whose number begins its name, with the outcome of a call for Machine m1.
type situation struct {
	world  world                  // boots take 10 s, deletions 5 s, and lists do not lag unless it says otherwise
	before func(r *rig, m made)   // what happened until the call; it changes m, which is new
	faults []fault                // from the call on
	call   func(*rig, made) error // by the manager
	reason provider.Reason        // that the manager is told; "" is OK
	left   int                    // servers: after a creation a minute later, else at once
	calls  int                    // at most, token requests aside; 0 is any number
	within time.Duration          // the call ends; 0 is any time
	then   func(r *rig, m made)   // more to check
}

type (
	world = []iaasmock.Option
	made  = *v1alpha1.Machine
	fault = iaasmock.Fault
)

// none is a bound of no calls.
const none = -1

func runSituations(t *testing.T, rows map[string]situation, later time.Duration) {
	for name, row := range rows {
		bubble(t, name, func(t *testing.T) { row.run(t, later) })
	}
}

// run makes the call, checks its outcome, and takes the Machine to its end: nothing may be left then but the servers
// of others.
func (row *situation) run(t *testing.T, later time.Duration) {
	r, m := newRig(t, row.world...), machine("m1")
	if row.before != nil {
		row.before(r, m)
	}
	for _, fault := range row.faults {
		r.cloud.Inject(fault)
	}
	r.cloud.ResetCalls()
	began := time.Now()
	err := row.call(r, m)
	if took := time.Since(began); row.within > 0 && took > row.within {
		t.Errorf("it took %s, want at most %s", took, row.within)
	}
	switch counts := r.cloud.CallCounts(); {
	case row.calls != 0 && len(r.cloud.Calls())-counts["Token"] > max(row.calls, 0):
		t.Errorf("calls: %v, want at most %d", counts, max(row.calls, 0))
	case row.reason != "":
		wantReason(t, err, row.reason)
	case err != nil:
		t.Errorf("the manager is told %v", err)
	}
	<-time.After(later)
	if servers := r.cloud.Servers(); len(servers) != row.left {
		t.Errorf("%d servers are left, want %d: %+v", len(servers), row.left, servers)
	}
	r.wantUntouched(append(r.theirs, r.own))
	if row.then != nil {
		row.then(r, m)
	}
	r.cloud.ClearFaults()
	isUnclear := []provider.Reason{"", provider.ReasonNotOurs, provider.ReasonNotTakenOver}
	if err := insist(func() error { return r.remove(m) }); !slices.Contains(isUnclear, reasonOf(err)) {
		t.Errorf("the Machine's deletion: %v", err)
	}
	for _, server := range r.cloud.Servers() {
		if !slices.Contains(r.theirs, server.ID) && server.Name == "m1" {
			t.Errorf("left over: %+v", server)
		}
	}
	r.wantUntouched(r.theirs)
}

// wantUntouched checks that the servers exist, and that nobody asked for their deletion.
func (r *rig) wantUntouched(ids []string) {
	r.t.Helper()
	for _, id := range ids {
		if server, ok := r.cloud.Server(id); id != "" && (!ok || server.Status == iaasmock.StatusDeleting) {
			r.t.Errorf("server %s is %q, want it untouched", id, server.Status)
		}
	}
}

// The manager's calls. A creation checks the answer against what the row says of the Machine's own server.

func creates(r *rig, m made) error {
	response, err := r.create(m)
	if err == nil {
		id := serverOf(withID(m, response.ProviderID))
		if _, exists := r.cloud.Server(id); !exists || r.own != "" && r.own != id || slices.Contains(r.theirs, id) {
			r.t.Errorf("the answer is server %s; there are %+v", id, r.cloud.Servers())
		}
	}
	return err
}

func createsUntilOK(r *rig, m made) error { return insist(func() error { return creates(r, m) }) }

func removes(r *rig, m made) error { return r.remove(m) }

func removesUntilOK(r *rig, m made) error { return insist(func() error { return r.remove(m) }) }

func asksForStatus(r *rig, m made) error { return r.statusErr(m) }

// collects is the orphan collector's call.
func collects(r *rig, m made) error { return r.delete(orphan("m1", serverOf(m))) }

// again makes the call once more, after a pause, whatever the first one was told.
func again(call func(*rig, made) error, pause time.Duration) func(*rig, made) error {
	return func(r *rig, m made) error {
		_ = call(r, m)
		<-time.After(pause)
		return call(r, m)
	}
}

// What happened before.

// running: the Machine's server runs, made by another process, and the Machine has its ProviderID.
func running(r *rig, m made) {
	m.Spec.ProviderID = r.makeRunning("m1")
	<-time.After(time.Minute)
}

// booting: a server of the Machine was just requested by another process.
func booting(r *rig, _ made) { r.makeServer("m1", nil) }

// deletedByHand: running, and somebody deleted the server.
func deletedByHand(r *rig, m made) {
	running(r, m)
	r.removeServer(serverOf(m))
}

// succeeded: what was before, and then another process leads.
func succeeded(before func(*rig, made)) func(*rig, made) {
	return func(r *rig, m made) {
		before(r, m)
		r.restartNow()
	}
}

// created: by the process itself, with these faults. The manager saw nothing of it, but for an error.
func created(faults ...fault) func(*rig, made) {
	return func(r *rig, m made) {
		for _, fault := range faults {
			r.cloud.Inject(fault)
		}
		_ = r.createErr(m)
	}
}

// beside: another's server has the Machine's name, and exactly these labels.
func beside(labels map[string]any) func(*rig, made) {
	return func(r *rig, _ made) {
		r.theirs = append(r.theirs, r.makeServer("m1", func(all map[string]any) { clear(all); maps.Copy(all, labels) }))
	}
}

// posts is a fault of POSTs of servers, deletes of their DELETEs, lists of their lists, gets of GETs, all of all calls.
func posts(f fault) fault   { f.Operation = "CreateServer"; return f }
func deletes(f fault) fault { f.Operation = "DeleteServer"; return f }
func lists(f fault) fault   { f.Operation = "ListServers"; return f }
func gets(f fault) fault    { f.Operation = "GetServer"; return f }
func all(f fault) fault     { f.Operation = iaasmock.OperationIaaS; return f }

// inError lets servers end in ERROR.
func inError(message string) fault {
	return posts(fault{FinalStatus: iaasmock.StatusError, ErrorMessage: message})
}

// once is the fault for one call.
func once(f fault) fault { f.Count = 1; return f }

// The API's words, and a gateway's.
var (
	refused  = posts(fault{Count: 1, Status: http.StatusUnprocessableEntity})
	lost     = posts(fault{Count: 1, DropAfter: true}) // its answer
	noQuota  = posts(fault{Count: 1, Status: http.StatusForbidden, Body: quotaExceeded})
	notFound = fault{Status: http.StatusNotFound, Body: `{"code":404,"msg":"server not found"}`}
	noEffect = deletes(fault{Status: http.StatusOK, Body: " "})
)

const quotaExceeded = `{"code":403,"msg":"Quota exceeded for cores: Requested 4, but already used 20 of 20 cores"}`

// othersOnly is the body of a list of servers that shows another one of the cluster.
const othersOnly = `{"items":[{"id":"` + someServerID + `","name":"x","status":"ACTIVE","machineType":"c2i.2",` +
	`"labels":{"kubernetes.io/cluster":"shoot-a"}}]}`

// someServer is an answer that names a server by an ID that is no UUID: no ProviderID names one.
const someServer = `{"id":"server-1","name":"m1","machineType":"c2i.2"}`

// gatewaysPage is what nginx answers with any status.
const gatewaysPage = "<html>\r\n<head><title>403 Forbidden</title></head>\r\n" +
	"<body><center><h1>403 Forbidden</h1></center></body></html>"

// page is the fault of a gateway that answers with its page.
func page(status int) fault {
	return fault{Status: status, Body: gatewaysPage, ContentType: "text/html"}
}
