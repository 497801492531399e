// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the driver does while one kind of API calls fails and others work.

// together calls f for each of the machines at a time, and returns the errors.
func together(machines []*v1alpha1.Machine, f func(m *v1alpha1.Machine) error) []error {
	var results []<-chan error
	for _, m := range machines {
		results = append(results, start(func() error { return f(m) }))
	}
	errs := make([]error, len(results))
	for i, result := range results {
		errs[i] = <-result
	}
	return errs
}

// wantNone checks that none of the calls failed.
func wantNone(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func machines(n int) []*v1alpha1.Machine {
	var all []*v1alpha1.Machine
	for i := range n {
		all = append(all, machine(fmt.Sprint("machine-", i)))
	}
	return all
}

// The account lost its role: what it may still list is empty, and proves nothing.
func TestAnAccountThatLostItsRoleProvesNoServerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		<-time.After(time.Minute)
		r.restartNow()
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusForbidden})
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true})
		if err := r.remove(m); err == nil {
			t.Error("the manager is told that the server is gone")
		}
		r.onlyServer()
	})
}

// Lists fail, for a Machine whose ProviderID is known.
func TestADeletionWithoutListsAsksForTheServerAtOnce(t *testing.T) {
	unavailable := iaasmock.Fault{Status: http.StatusServiceUnavailable}
	silent := iaasmock.Fault{NeverAnswers: true, Status: http.StatusGatewayTimeout}
	for name, row := range map[string]struct {
		lists iaasmock.Fault
		// getsFail is for how long GETs fail, too: the one that would let the server be deleted among them.
		getsFail, within time.Duration
	}{
		"they answer 503":              {unavailable, 0, 30 * time.Second},
		"they never answer":            {silent, 0, 30 * time.Second},
		"and so do GETs, for a moment": {unavailable, 25 * time.Second, 2 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			<-time.After(time.Minute)
			r.makeServer("m1", nil)
			row.lists.Operation = "ListServers"
			r.cloud.Inject(row.lists)
			if row.getsFail > 0 {
				r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Duration: row.getsFail, Status: unavailable.Status})
			}
			done := start(func() error { return insist(func() error { return r.remove(m) }) })
			<-time.After(row.within)
			for _, left := range r.cloud.Servers() {
				if providerIDOf(left.ID) == m.Spec.ProviderID && left.Status != iaasmock.StatusDeleting {
					t.Errorf("the server is %s after %s", left.Status, row.within)
				}
			}
			<-time.After(time.Minute)
			if lists := r.cloud.CallCounts()["ListServers"]; lists > 80 {
				t.Errorf("%d lists in %s", lists, row.within+time.Minute)
			}
			r.cloud.ClearFaults()
			if err := <-done; err != nil {
				t.Error(err)
			}
			r.wantNothingLeft() // of the other one, too
		})
	}
}

// All reads fail while many servers are to go: no Machine repeats its GET for itself, nor fetches a token for it.
func TestManyDeletionsDoNotStormWhileAllReadsFail(t *testing.T) {
	for _, answer := range []int{http.StatusServiceUnavailable, http.StatusUnauthorized} {
		bubble(t, fmt.Sprint(answer), func(t *testing.T) {
			r := newRig(t)
			all := machines(50)
			wantNone(t, together(all, r.createAndName))
			<-time.After(time.Minute)
			r.cloud.ResetCalls()
			r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: answer, Body: "no healthy upstream",
				ContentType: "text/plain", Duration: 4 * time.Minute})
			time.AfterFunc(4*time.Minute, func() {
				if calls := r.cloud.CallCounts(); calls["GetServer"] > 250 || calls["Token"] > 80 {
					t.Errorf("%v in 4 minutes", calls)
				}
			})
			wantNone(t, together(all, func(m *v1alpha1.Machine) error {
				return insist(func() error { return r.remove(m) })
			}))
			r.wantNothingLeft()
		})
	}
}

// Who can read by itself does so when it is due, however long lists are put off.
func TestListsThatFailDelayNoCreation(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		bubble(t, fmt.Sprint(n), func(t *testing.T) {
			const boot = 65 * time.Second
			r := newRig(t, iaasmock.WithBootDuration(boot))
			began := time.Now()
			done := start(func() error { return errors.Join(together(machines(n), r.createErr)...) })
			<-time.After(3 * time.Second)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusServiceUnavailable})
			if err := <-done; err != nil {
				t.Error(err)
			}
			wantWithin(t, began, boot+10*time.Second)
		})
	}
}

// An API answers 403 by mistake for a moment, now and then.
func TestAMomentOf403EndsNoCreation(t *testing.T) {
	for name, faults := range map[string][]iaasmock.Fault{
		"to all reads, twice": {
			{Operation: iaasmock.OperationIaaS, After: 20 * time.Second, Duration: 5 * time.Second},
			{Operation: iaasmock.OperationIaaS, After: 70 * time.Second, Duration: 5 * time.Second}},
		"to reads of NICs": {{Operation: "ListNics", Duration: 105 * time.Second},
			{Operation: "ListServerNICs", Duration: 105 * time.Second}},
		"at the end of an outage": {{Operation: iaasmock.OperationIaaS, Status: 503, Duration: 28 * time.Second},
			{Operation: iaasmock.OperationIaaS, After: 28 * time.Second, Duration: 25 * time.Second}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(90*time.Second))
			for _, fault := range faults {
				fault.Status = cmp.Or(fault.Status, http.StatusForbidden)
				r.cloud.Inject(fault)
			}
			r.mustCreate(machine("m1"))
		})
	}
}

// What fails while a call waits is named at its end.
func TestALateEndNamesTheCallThatFailed(t *testing.T) {
	const why, withoutMessage = "volume vol-1 cannot be detached", ""
	always := func(r *rig, status int, message string, operations ...string) {
		for _, operation := range operations {
			broken := iaasmock.Fault{Operation: operation, Status: status}
			if message != withoutMessage {
				broken.Body = fmt.Sprintf(`{"code":%d,"msg":%q}`, status, message)
			}
			r.cloud.Inject(broken)
		}
	}
	late := func(t *testing.T, err error, says string) {
		wantCode(t, err, codes.DeadlineExceeded)
		wantSaid(t, err.Error(), says)
	}
	bubble(t, "reads of NICs", func(t *testing.T) {
		r := newRig(t)
		always(r, http.StatusBadGateway, withoutMessage, "ListServerNICs", "ListNics")
		late(t, r.createErr(machine("m1")), "NICs: status 502")
	})
	// The pace holds back most repetitions, and the last one.
	for _, status := range []int{500, 503, 423, 402} {
		says := fmt.Sprintf("status %d: %s", status, why)
		bubble(t, fmt.Sprint("DELETEs, ", status), func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			always(r, status, why, "DeleteServer")
			late(t, r.remove(m), "deleting a server: "+says)
		})
		bubble(t, fmt.Sprint("updates of a NIC, ", status), func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(s map[string]any) { s["allowedAddresses"] = []string{"10.96.0.0/11"} })
			always(r, status, why, "UpdateNic")
			late(t, r.createErr(machine("m1")), "updating a NIC: "+says)
		})
	}
}

// A missing permission is told as one, and soon.
func TestAMissingPermissionIsToldSoon(t *testing.T) {
	type prepare func(r *rig) *v1alpha1.Machine
	ours := func(r *rig) *v1alpha1.Machine { return withID(machine("m1"), r.makeRunning("m1")) }
	theirs := func(r *rig) *v1alpha1.Machine {
		return withID(migrated(machine("m1")), providerIDOf(r.fromOpenStack("m1")))
	}
	isGone := func(made prepare) prepare { // as in each later call for a Machine whose first one asked for the deletion
		return func(r *rig) *v1alpha1.Machine {
			m := made(r)
			r.deleteByHand(serverOf(m))
			return m
		}
	}
	lists, both := []string{"ListServers"}, []string{"ListServers", "GetServer"}
	const servers = "listing servers|reading a server"
	for name, row := range map[string]struct {
		toDelete      prepare // nil lets the Machine be created
		refused       []string
		after         time.Duration
		says          string
		nics, volumes int // that are left of a server from OpenStack
	}{
		"a creation, GETs and lists of servers": {nil, both, time.Second, servers, 0, 0},
		"a creation, reads of NICs":             {nil, []string{"ListServerNICs", "ListNics"}, time.Second, "NICs", 0, 0},
		"a creation, updates of NICs":           {nil, []string{"UpdateNic"}, time.Second, "updating a NIC", 0, 0},
		"GETs and lists of servers":             {ours, both, 0, servers, 0, 0},
		"lists of servers":                      {ours, lists, 0, servers, 0, 0},
		"GETs and lists, while it waits":        {ours, both, 3 * time.Second, servers, 0, 0},
		"lists, the server is gone":             {isGone(ours), lists, 0, servers, 0, 0},
		"OpenStack, lists, the server is gone":  {isGone(theirs), lists, 0, servers, 1, 1},
		"OpenStack, lists of volumes":           {theirs, []string{"ListVolumes"}, 0, "listing volumes", 1, 1},
		"OpenStack, lists of NICs":              {theirs, []string{"ListNics"}, 0, "reading a network's NICs", 1, 1},
		"OpenStack, DELETEs of a volume":        {theirs, []string{"DeleteVolume"}, 0, "deleting a volume", 0, 1},
		"OpenStack, DELETEs of a NIC":           {theirs, []string{"DeleteNic"}, 0, "deleting a NIC", 1, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			call := func() error { return r.createErr(machine("m1")) }
			if row.toDelete != nil {
				m := row.toDelete(r)
				call = func() error { return r.remove(m) }
				<-time.After(time.Minute)
			}
			for _, operation := range row.refused {
				r.cloud.Inject(iaasmock.Fault{Operation: operation, After: row.after, Status: http.StatusForbidden})
			}
			began := time.Now()
			err := call()
			wantCode(t, err, codes.PermissionDenied)
			wantWithin(t, began, bootDuration+time.Minute)
			if !regexp.MustCompile(row.says).MatchString(err.Error()) {
				t.Errorf("%v does not say %q", err, row.says)
			}
			if _, nics, volumes := r.named("m1"); row.toDelete != nil && (nics != row.nics || volumes != row.volumes) {
				t.Errorf("%d NICs and %d volumes are left, want %d and %d", nics, volumes, row.nics, row.volumes)
			}
		})
	}
}

// Of a key that is refused the manager comes back in minutes, of a token endpoint that is out of order in
// seconds: then the machine gets its server.
func TestARefusedKeyIsNotATokenEndpointOutOfOrder(t *testing.T) {
	const page = "<html><head><title>403 Forbidden</title></head><body>nginx</body></html>"
	answer := func(status int, body string) iaasmock.Fault {
		return iaasmock.Fault{Operation: "Token", Status: status, Body: body, ContentType: "text/html",
			Duration: 5 * time.Minute}
	}
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		want  codes.Code
	}{
		"the key was deleted": {answer(400, `{"error":"invalid_grant"}`), codes.Unauthenticated},
		"the key was deleted, of old": {answer(401, `{"code":401,"msg":"Key with kid a was not found"}`),
			codes.Unauthenticated},
		"a page with 403":   {answer(403, page), codes.Unavailable},
		"a page with 400":   {answer(400, page), codes.Unavailable},
		"a page with 200":   {answer(200, page), codes.Unavailable},
		"the gateway's 403": {answer(403, `{"status":403,"error":"Forbidden","message":"Unauthorized"}`), codes.Unavailable},
		"the gateway's 429": {answer(429, `{"status":429,"error":"Too Many Requests","message":"rate limit exceeded"}`),
			codes.Unavailable},
		"an outage":     {answer(503, page), codes.Unavailable},
		"nothing":       {answer(401, ""), codes.Unavailable},
		"no connection": {iaasmock.Fault{Operation: "Token", DropBefore: true, Duration: 5 * time.Minute}, codes.Unavailable},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(row.fault)
			m := machine("m1")
			for method, call := range map[string]func() error{
				"CreateMachine":    func() error { return r.createErr(m) },
				"DeleteMachine":    func() error { return r.remove(withID(m, providerIDOf(someServerID))) },
				"GetMachineStatus": func() error { return r.statusErr(withID(m, providerIDOf(someServerID))) },
				"ListMachines":     r.listErr,
			} {
				err := call()
				wantCode(t, err, row.want)
				if says := strings.Contains(err.Error(), "Authentication failed"); says != (row.want == codes.Unauthenticated) {
					t.Errorf("%s: %v", method, err)
				}
			}
			r.wantCalls("CreateServer", 0)
			<-time.After(5*time.Minute + 30*time.Second) // the last fetch's pause has ended
			r.mustCreate(m)
			r.onlyServer()
		})
	}
}

// A firewall drops what is sent to the token endpoint, as where it knows that of older keys only: no text looks for the
// fault in the API, which nobody could ask.
func TestATokenEndpointThatNeverAnswersIsNamed(t *testing.T) {
	known := withID(machine("m1"), providerIDOf(someServerID))
	for method, call := range map[string]func(*rig) error{
		"CreateMachine":     func(r *rig) error { return r.createErr(machine("m1")) },
		"InitializeMachine": func(r *rig) error { return r.initErr(known) },
		"GetMachineStatus":  func(r *rig) error { return r.statusErr(known) },
		"DeleteMachine":     func(r *rig) error { return r.remove(known) },
		"ListMachines":      (*rig).listErr,
	} {
		bubble(t, method, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(iaasmock.Fault{Operation: "Token", NeverAnswers: true, Status: http.StatusGatewayTimeout})
			for began := time.Now(); time.Since(began) < 10*time.Minute; <-time.After(5 * time.Second) {
				err := call(r)
				wantReason(t, err, provider.ReasonTokenEndpointDown)
				wantSaid(t, err.Error(), "access token")
			}
		})
	}
}

// A token endpoint that is out of order ends no call that waits for its server.
func TestATokenEndpointOutOfOrderEndsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithBootDuration(time.Minute), iaasmock.WithTokenLifetime(20*time.Second))
		done := r.startCreate(machine("m1"))
		<-time.After(10 * time.Second)
		r.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: 403, Body: "<html>", ContentType: "text/html",
			Duration: 5 * time.Minute})
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.onlyServer()
	})
}

// 50 machines, a kind of calls that fails for 5 minutes, and a manager that comes back every 5 s: a storm is at
// most 100 calls in its first minute, and soon 6 a minute. Once the API is back all is soon done.
func TestWritesAndTokensDoNotStorm(t *testing.T) {
	const outage = 5 * time.Minute
	create := func(c *fleet, m *v1alpha1.Machine) error { return c.createErr(m) }
	remove := func(c *fleet, m *v1alpha1.Machine) error { return c.delete(c.deleted(m)) }
	unavailable := iaasmock.Fault{Status: http.StatusServiceUnavailable}
	for name, row := range map[string]struct {
		operation string
		fault     iaasmock.Fault
		call      func(*fleet, *v1alpha1.Machine) error
		later     int // calls in each minute after the second
	}{
		"POST answered 429": {"CreateServer", iaasmock.Fault{Status: http.StatusTooManyRequests}, create, 4},
		"POST answered 402": {"CreateServer", iaasmock.Fault{Status: http.StatusPaymentRequired}, create, 4},
		"POST answered 423": {"CreateServer", iaasmock.Fault{Status: http.StatusLocked}, create, 4},
		"POST answered 451": {"CreateServer", iaasmock.Fault{Status: http.StatusUnavailableForLegalReasons}, create, 4},
		"POST, a page of 403": {"CreateServer",
			iaasmock.Fault{Status: http.StatusForbidden, Body: gatewaysPage, ContentType: "text/html"}, create, 4},
		"POST that hangs":     {"CreateServer", iaasmock.Fault{Delay: 29 * time.Second, DropBefore: true}, create, 4},
		"POST answered 401":   {"CreateServer", iaasmock.Fault{Status: http.StatusUnauthorized}, create, 4},
		"DELETE answered 401": {"DeleteServer", iaasmock.Fault{Status: http.StatusUnauthorized}, remove, 4},
		"PATCH answered 401":  {"UpdateNic", iaasmock.Fault{Status: http.StatusUnauthorized}, create, 4},
		"DELETE answered 503": {"DeleteServer", unavailable, remove, 4},
		"PATCH answered 503":  {"UpdateNic", unavailable, create, 4},
		"tokens answered 503": {"Token", unavailable, create, 6}, // no write, but a fetch of its own
	} {
		bubble(t, name, func(t *testing.T) {
			c := newFleet(t, many(50), many(50))
			c.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			all := func(call func(*fleet, *v1alpha1.Machine) error) {
				c.each(func(m *v1alpha1.Machine) {
					for insist(func() error { return call(c, m) }) != nil { // 401 is told
						<-time.After(3 * time.Minute)
					}
				})
			}
			if row.operation == "DeleteServer" {
				all(create)
			}
			row.fault.Operation, row.fault.Duration = row.operation, outage
			c.cloud.Inject(row.fault)
			c.cloud.ResetCalls()
			start := time.Now()
			all(row.call)
			counts := make([]int, outage/time.Minute)
			for _, call := range c.cloud.Calls() {
				if minute := int(call.StartedAt.Sub(start) / time.Minute); call.Operation == row.operation && minute < len(counts) {
					counts[minute]++
				}
			}
			t.Logf("calls a minute: %v; all is done %s after the outage", counts, time.Since(start)-outage)
			if counts[0] > 100 || slices.Max(counts[2:]) > row.later {
				t.Errorf("%v calls in five minutes, want at most 100, and %d in each after the second", counts, row.later)
			}
			wantWithin(t, start, outage+4*time.Minute)
			names := map[string]bool{}
			for _, server := range c.cloud.Servers() {
				if names[server.Name] {
					t.Errorf("%s has two servers", server.Name)
				}
				names[server.Name] = true
			}
		})
	}
}

// A call in which something has worked goes on. One that begins in the outage ends with its first failure after 30 s,
// so that the manager comes again. A minute after the outage all is done.
func TestAnOutageOfMinutesLosesNothing(t *testing.T) {
	const outage = 5 * time.Minute
	for name, fault := range map[string]iaasmock.Fault{
		"503":              {Status: http.StatusServiceUnavailable},
		"no answer":        {NeverAnswers: true, Status: http.StatusGatewayTimeout},
		"no connection":    {DropBefore: true},
		"a gateway's page": {Status: http.StatusOK, Body: gatewaysPage, ContentType: "text/html"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(time.Minute))
			goes := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			waits := r.startCreate(machine("m2"))
			<-time.After(10 * time.Second)
			fault.Operation, fault.Duration = iaasmock.OperationIaaS, outage
			r.cloud.Inject(fault)
			began := time.Now()
			deletion := start(func() error { return insist(func() error { return r.remove(goes) }) })
			wantReason(t, r.createErr(machine("m3")), provider.ReasonAPIFailed)
			if took := time.Since(began); took < 30*time.Second || took > 90*time.Second {
				t.Errorf("a new creation is told after %s, want the first failure after 30 s", took)
			}
			creation := start(func() error { _, err := r.createAsManager(machine("m3")); return err })
			wantNone(t, []error{<-waits, <-deletion})
			wantWithin(t, began, outage+time.Minute)
			wantNone(t, []error{<-creation})
			wantWithin(t, began, outage+2*time.Minute) // its boot among them
			r.wantNamed("m1", 0, 0, 0)
			r.wantNamed("m2", 1, 0, 0)
			r.wantNamed("m3", 1, 0, 0)
		})
	}
}
