// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the driver does while the API or the token endpoint fails or refuses.

// What is refused: for a moment it is waited out, for good it is told after 30 s (row 23), what the token endpoint
// refuses at once (row 20).
func TestRefusals(t *testing.T) {
	refuse := func(after time.Duration, status int, operations ...string) (faults []fault) {
		for _, operation := range operations {
			faults = append(faults, fault{Operation: operation, After: after, Status: status})
		}
		return faults
	}
	addresses := func(r *rig, _ made) {
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	}
	gone := func(r *rig, m made) { going()(r, m); <-time.After(time.Minute) }
	theirs := func(r *rig, m made) { // from OpenStack
		addresses(r, m)
		*m = *withID(migrated(m), providerIDOf(r.fromOpenStack("m1")))
		<-time.After(time.Minute)
	}
	theirsGone := func(r *rig, m made) { theirs(r, m); r.deleteByHand(serverOf(m)); <-time.After(time.Minute) }
	left := func(r *rig, _ made) { r.wantNamed("m1", 0, 1) }
	const iaas, soon = iaasmock.OperationIaaS, bootDuration + time.Minute
	const noPermission, refusedKey = provider.ReasonNoPermission, provider.ReasonCredentialsRefused
	revoked := func(before func(*rig, made)) func(*rig, made) { // 10 s after the call began
		return func(r *rig, m made) {
			before(r, m)
			time.AfterFunc(10*time.Second, func() {
				if err := r.cloud.RevokeServiceAccountKey(keys().first); err != nil {
					r.t.Error(err)
				}
			})
		}
	}
	refusedAgain := func(r *rig, m made) { // told at once; with the new key all is well
		began := time.Now()
		wantReason(t, r.createErr(m), refusedKey)
		wantWithin(t, began, time.Second)
		if err := r.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, keys().rotated); err != nil {
			r.t.Error(err)
		}
		r.secret.Data["serviceAccountKey"] = keys().rotated
	}
	region := func(r *rig, _ made) { r.secret.Data["region"] = []byte("eu99") }
	slowBoot := world{iaasmock.WithBootDuration(90 * time.Second)}
	noProject := fault{Status: http.StatusNotFound, Body: `{"code":404,"msg":"project not found"}`}
	runSituations(t, map[string]situation{
		"20: the key is revoked while the server boots": {before: revoked(func(*rig, made) {}),
			faults: []fault{posts(fault{NeverBoots: true})}, call: creates, reason: refusedKey, left: 1,
			within: 45 * time.Second, then: refusedAgain},
		"20: the key is revoked while a deletion looks for servers": {
			before: revoked(succeeded(func(*rig, made) {})), call: removes, reason: refusedKey, within: 45 * time.Second,
			then: refusedAgain},
		"20: the token endpoint is down while the server boots": {
			world: world{iaasmock.WithBootDuration(time.Minute), iaasmock.WithTokenLifetime(20 * time.Second)},
			faults: []fault{{Operation: "Token", After: 10 * time.Second, Duration: 5 * time.Minute, Status: 403,
				Body: gatewaysPage, ContentType: "text/html"}}, call: creates, left: 1},
		"23: 401 to all, a creation": {
			faults: refuse(0, 401, iaas), call: creates, reason: refusedKey, within: time.Minute},
		"23: 401 to a POST, with a fresh token, too": {
			faults: refuse(0, 401, "CreateServer"), call: creates, reason: refusedKey, within: time.Minute},
		"23: 401 to DELETEs": {before: running, faults: refuse(0, 401, "DeleteServer"), call: removes, reason: refusedKey,
			left: 1, within: 90 * time.Second},
		"23: 403 to all, a creation": {
			faults: refuse(0, 403, iaas), call: creates, reason: noPermission, within: time.Minute},
		"23: 403 to reads of servers while one boots": {faults: refuse(time.Second, 403, "ListServers", "GetServer"),
			call: creates, reason: noPermission, left: 1, within: soon},
		"23: 403 to reads of NICs": {faults: refuse(time.Second, 403, "ListServerNICs", "ListNics"),
			call: creates, reason: noPermission, left: 1, within: soon},
		"23: 403 to PATCHes of NICs": {before: addresses, faults: refuse(time.Second, 403, "UpdateNic"),
			call: creates, reason: noPermission, left: 1, within: soon},
		"23: 403 to lists, a deletion": {before: running, faults: refuse(0, 403, "ListServers"),
			call: removes, reason: noPermission, within: soon},
		"23: 403 to lists, the server is gone": {before: gone, faults: refuse(0, 403, "ListServers"),
			call: removes, reason: noPermission, within: soon},
		"23: 403 to reads while a deletion waits": {before: running,
			faults: refuse(3*time.Second, 403, "ListServers", "GetServer"),
			call:   removes, reason: noPermission, within: soon},
		"23: 403 to lists, gone, from OpenStack": {before: theirsGone, faults: refuse(0, 403, "ListServers"),
			call: removes, reason: noPermission, within: soon, then: left},
		"23: 403 to lists of NICs, from OpenStack": {before: theirs, faults: refuse(0, 403, "ListNics"),
			call: removes, reason: noPermission, within: soon, then: left},
		"23: 403 to DELETEs of NICs, from OpenStack": {before: theirs, faults: refuse(0, 403, "DeleteNic"),
			call: removes, reason: noPermission, within: soon, then: left},
		"23: a region that does not exist": {
			before: region, call: creates, reason: provider.ReasonResourceMissing, within: time.Minute,
			then: func(r *rig, _ made) { r.makeInputs() }},
		"23: a project that does not exist, a deletion": {before: succeeded(running), faults: []fault{all(noProject)},
			call: removes, reason: provider.ReasonResourceMissing, within: time.Minute, left: 1},
		"23: a project that does not exist, a status": {before: running, faults: []fault{all(noProject)},
			call: asksForStatus, reason: provider.ReasonResourceMissing, within: time.Minute, left: 1},
		"23: such a 404 to lists alone proves nothing": {before: running, call: removes, within: 2 * time.Minute,
			faults: []fault{lists(fault{Status: 404, Body: `{"code":404,"msg":"label not found"}`, Duration: time.Minute})}},
		"23: 403 to all reads, twice for a moment": {world: slowBoot, call: creates, left: 1, faults: []fault{
			all(fault{Status: 403, After: 20 * time.Second, Duration: 5 * time.Second}),
			all(fault{Status: 403, After: 70 * time.Second, Duration: 5 * time.Second})}},
		"23: 403 to all reads at the end of an outage": {world: slowBoot, call: creates, left: 1, faults: []fault{
			all(fault{Status: 503, Duration: 28 * time.Second}),
			all(fault{Status: 403, After: 28 * time.Second, Duration: 25 * time.Second})}},
		"21: a gateway's page of 403": {faults: []fault{all(page(403))}, call: creates, reason: provider.ReasonAPIFailed},
		"21: a gateway's page of 200": {faults: []fault{all(page(200))}, call: creates, reason: provider.ReasonAPIFailed},
		"21: a gateway's 401":         {faults: []fault{all(page(401))}, call: creates, reason: provider.ReasonAPIFailed},
		"21: a gateway's 404, a status": {before: running, faults: []fault{all(page(404))}, call: asksForStatus,
			reason: provider.ReasonAPIFailed, left: 1},
		"21: a gateway's 400 in JSON": {faults: []fault{all(fault{Status: 400, Body: `{"error":"Forbidden"}`})},
			call: creates, reason: provider.ReasonAPIFailed},
	}, 0)
}

// methods are the driver's for a Machine that has a server; a creation is another one's.
var methods = map[string]func(r *rig, m made) error{
	"CreateMachine":     func(r *rig, _ made) error { return r.createErr(machine("m2")) },
	"InitializeMachine": (*rig).initErr, "GetMachineStatus": (*rig).statusErr, "DeleteMachine": (*rig).remove,
	"ListMachines": func(r *rig, _ made) error { return r.listErr() },
}

// Of a key that is refused the manager comes back in minutes, of a token endpoint that is out of order in
// seconds: then the machine gets its server. No text looks for the fault in the API, which nobody could ask.
func TestARefusedKeyIsNotATokenEndpointOutOfOrder(t *testing.T) {
	const refused, isDown = provider.ReasonCredentialsRefused, provider.ReasonTokenEndpointDown
	says := map[provider.Reason]string{isDown: "access token", refused: "Authentication failed"}
	for name, row := range map[string]struct {
		fault fault
		want  provider.Reason
	}{
		"the key was deleted": {fault{Status: 400, Body: `{"error":"invalid_grant"}`}, refused},
		"the key was deleted, of old": {fault{Status: 401, Body: `{"code":401,"msg":"Key with kid a was not found"}`},
			refused},
		"a page with 403": {page(403), isDown},
		"the gateway's 403": {fault{Status: 403, Body: `{"status":403,"error":"Forbidden","message":"Unauthorized"}`},
			isDown},
		"an outage":     {fault{Status: 503}, isDown},
		"nothing":       {fault{Status: 401, Body: " ", ContentType: "text/html"}, isDown},
		"no connection": {fault{DropBefore: true}, isDown},
		"no answer":     {fault{NeverAnswers: true, Status: 504}, isDown}, // as behind a firewall
	} {
		for method, call := range methods {
			bubble(t, name+", "+method, func(t *testing.T) {
				r := newRig(t)
				row.fault.Operation = "Token"
				r.cloud.Inject(row.fault)
				for range 3 {
					err := call(r, withID(machine("m1"), providerIDOf(someServerID)))
					wantReason(t, err, row.want)
					wantSaid(t, err.Error(), says[row.want])
					<-time.After(5 * time.Second)
				}
				r.cloud.ClearFaults()
				<-time.After(30 * time.Second) // the last fetch's pause has ended
				r.mustCreate(machine("m2"))
			})
		}
	}
}

// A moment at the beginning of a call is nobody's problem: an error stands in the Machine's status until its server has
// booted, and the manager's pauses after a refusal take minutes. The deletion of an orphan ends after 5 s.
func TestTheBeginningOfACallOutlastsFailures(t *testing.T) {
	for name, fault := range map[string]fault{
		"401": {Status: 401}, "403": {Status: 403}, "503": {Status: 503}, "429": {Status: 429}, "a page": page(200),
		"a gateway without the key": {Status: 401, ContentType: "text/plain",
			Body: "Jwks doesn't have key to match kid or alg from Jwt"},
		"a page of the token endpoint": {Operation: "Token", Status: 403, Body: gatewaysPage, ContentType: "text/html"},
		"no connection":                {DropBefore: true},
		"a 404 about the region":       {Status: 404, Body: `{"code":404,"msg":"region not found"}`},
	} {
		for method, call := range methods {
			bubble(t, name+", "+method, func(t *testing.T) {
				r := newRig(t)
				m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
				<-time.After(2 * time.Hour) // its token has expired, and nothing is remembered
				fault.Operation, fault.Duration = cmp.Or(fault.Operation, iaasmock.OperationIaaS), 10*time.Second
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

// One page, whatever its status and the call that it answers, decides nothing about the class, the key or the
// server, even if the gateway had passed the call on.
func TestAGatewaysPageIsNotTheAPIsWord(t *testing.T) {
	for _, operation := range []string{iaasmock.OperationIaaS, "CreateServer", "DeleteServer", "ListServers", "GetServer",
		"UpdateNic", "ListServerNICs"} {
		for _, status := range []int{401, 403, 404, 200, 202, 409, 422} {
			for _, executed := range []bool{false, true} {
				bubble(t, fmt.Sprintf("%s, %d, executed %t", operation, status, executed), func(t *testing.T) {
					if testing.Short() && status > 401 {
						t.Skip("one status is enough")
					}
					r := newRig(t)
					r.setSpec(func(s map[string]any) { s["allowedAddresses"] = []string{"10.96.0.0/11"} })
					m := machine("m1")
					for method, call := range []func() error{
						func() error { return r.createAndName(m) }, func() error { return r.initErr(m) },
						func() error { return r.statusErr(m) }, r.listErr, func() error { return r.remove(m) },
					} {
						fault := page(status)
						fault.Operation, fault.Count, fault.Executed = operation, 1, executed
						r.cloud.Inject(fault)
						began := time.Now()
						if err := insist(call); err != nil { // else the manager would pause for minutes
							t.Errorf("call %d: %v", method, err)
						}
						wantWithin(t, began, 10*time.Minute)
						r.cloud.ClearFaults()
						if servers := len(r.cloud.Servers()); servers != 1 && method < 4 || servers != 0 && method == 4 {
							t.Errorf("call %d: there are %d servers", method, servers)
						}
					}
				})
			}
		}
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
			r.wantNamed("m1", 0, 0)
			r.wantNamed("m2", 1, 0)
			r.wantNamed("m3", 1, 0)
		})
	}
}

// Who can read by itself does so when it is due, however long lists are put off: a read that hangs ends after 20 s.
func TestListsThatFailDelayNoCreation(t *testing.T) {
	for name, row := range map[string]struct {
		machines int
		fault    fault
		over     time.Duration // the boot of a server
	}{
		"they answer 503, two wait":   {2, fault{Status: http.StatusServiceUnavailable}, 10 * time.Second},
		"they answer 503, eight wait": {8, fault{Status: http.StatusServiceUnavailable}, 10 * time.Second},
		"they hang":                   {8, fault{Delay: 24 * time.Hour}, 30 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			const boot = 65 * time.Second
			r := newRig(t, iaasmock.WithBootDuration(boot))
			row.fault.After = 3 * time.Second
			r.cloud.Inject(lists(row.fault))
			began := time.Now()
			wantNone(t, together(machines(row.machines), r.createErr))
			wantWithin(t, began, boot+row.over)
		})
	}
}

// An account that may create servers, but not see any, must not fill a project, whichever Machines of the class ask.
func TestServersThatNoReadShowsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
}
