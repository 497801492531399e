// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var randomNotFound = iaasmock.Fault{Operation: "GetServer", Count: 1, Status: http.StatusNotFound, Body: `{"code":404,"msg":"server not found"}`}

// relabel changes a server's labels by another's hand; nil removes one.
func (r *rig) relabel(serverID string, labels map[string]any) {
	r.t.Helper()
	if _, err := r.session().API.UpdateServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, serverID).
		UpdateServerPayload(iaas.UpdateServerPayload{Labels: labels}).Execute(); err != nil {
		r.t.Fatal(err)
	}
}

// The manager's next call comes from a cache that has not seen the ProviderID, and
// the lists do not show the server yet.
func TestAStaleCallAfterCreateMachineFindsItsServerByTheLedger(t *testing.T) {
	r := newRig(t, iaasmock.WithListLag(25*time.Second))
	created := r.mustCreate(machine("m1"))
	response, err := r.status(machine("m1"))
	if err != nil || response.ProviderID != created.ProviderID {
		t.Errorf("status is %+v, %v", response, err)
	}
}

// A request may be held back for long between being claimed and being sent.
func TestAServerWhoseRequestWasHeldBackIsYoungWhenItIsMade(t *testing.T) {
	for name, next := range map[string]func(*rig) error{
		"created again": func(r *rig) error { _, _ = r.status(machine("m1")); _, err := r.create(machine("m1")); return err },
		"deleted":       func(r *rig) error { return r.delete(r.deleted(machine("m1"))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(25*time.Second))
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"40"}}})
			r.mustCreate(machine("m1"))
			r.cloud.Inject(randomNotFound)
			if err := next(r); err != nil {
				t.Fatal(err)
			}
			if name == "deleted" {
				r.wantNothingLeft()
			} else {
				r.onlyServer()
			}
		})
	}
}

// The request was given up after its attempt's time, and may be accepted then.
func TestSettlingBeginsWhenTheRequestIsGivenUp(t *testing.T) {
	const silence = 20 * time.Second
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, Delay: silence, DropBefore: true})
	start := r.clock.Now()
	_, err := r.create(machine("m1"))
	wantCode(t, err, codes.Unavailable)
	if waited := r.clock.Since(start); waited < silence+provider.DefaultSettle {
		t.Errorf("gave up after %s, want at least %s", waited, silence+provider.DefaultSettle)
	}
}

// A random 404 must not be confirmed by a list that asks for labels the server
// does not carry any more.
func TestARandomNotFoundOfAServerWhoseLabelsWereChanged(t *testing.T) {
	for name, row := range map[string]struct {
		call func(r *rig, providerID string) error
		left int
	}{
		"create":               {func(r *rig, _ string) error { _, err := r.create(machine("m1")); return err }, 1},
		"delete by name":       {func(r *rig, _ string) error { return r.delete(r.deleted(machine("m1"))) }, 0},
		"delete by ProviderID": {func(r *rig, id string) error { return r.delete(withID(r.deleted(machine("m1")), id)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			r.relabel(r.onlyServer().ID, map[string]any{clusterLabel: nil})
			r.clock.Step(time.Minute) // past settling
			r.cloud.Inject(randomNotFound)
			wantCode(t, row.call(r, created.ProviderID), codes.Unavailable)
			r.onlyServer()
			if err := row.call(r, created.ProviderID); err != nil {
				t.Fatal(err)
			}
			if servers := r.cloud.Servers(); len(servers) != row.left {
				t.Errorf("%d servers in the end, want %d", len(servers), row.left)
			}
		})
	}
}

func TestCreateMachineOfAServerThatWasGivenToAnotherMachine(t *testing.T) {
	r := newRig(t)
	r.mustCreate(machine("m1"))
	r.relabel(r.onlyServer().ID, map[string]any{provider.StackitMachineLabel: "m2"})
	_, err := r.create(machine("m1"))
	wantCode(t, err, codes.FailedPrecondition)
	if r.onlyServer().Status != iaasmock.StatusActive {
		t.Error("the other machine's server was touched")
	}
}

// Lists may hold what was never asked for.
func TestWhatAListShowsIsCheckedAgain(t *testing.T) {
	r := newRig(t)
	foreign := r.makeServer("m1", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
	body := fmt.Sprintf(`{"items":[{"id":%q,"name":"m1","machineType":"t1.1","status":"ACTIVE","labels":{%q:"m1",%q:"class-a"}}]}`,
		foreign, provider.StackitMachineLabel, provider.StackitMachineClassLabel)
	remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: body})
	if listed := r.list(); len(listed) != 0 {
		t.Errorf("lists %v", listed)
	}
	created := r.mustCreate(machine("m1"))
	remove()
	if strings.HasSuffix(created.ProviderID, foreign) || len(r.cloud.Servers()) != 2 {
		t.Errorf("the machine got %s, which is another cluster's", created.ProviderID)
	}
}

func TestCreateMachineRemembersServersThatFoundNoHost(t *testing.T) {
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError, ErrorMessage: "No valid host was found."})
	_, err := r.create(machine("m1"))
	wantCode(t, err, codes.ResourceExhausted)
	r.cloud.ResetCalls()
	_, err = r.create(machine("m2"))
	wantCode(t, err, codes.ResourceExhausted)
	if posts := r.cloud.CallCounts()["CreateServer"]; posts != 0 {
		t.Errorf("%d requests for a server within the minute, want none", posts)
	}
}

func TestCreateMachineWhoseServerGoesWhileItsAddressesAreAwaited(t *testing.T) {
	for name, row := range map[string]struct {
		happens func(*rig, string) error
		want    codes.Code
	}{
		"deleted": {func(r *rig, id string) error { return r.cloud.RemoveServer(id) }, codes.Aborted},
		"failed": {func(r *rig, id string) error {
			return r.cloud.SetServerStatus(id, iaasmock.StatusError, "No valid host was found.")
		}, codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithAddressDelay(24*time.Hour))
			done := make(chan error)
			go func() {
				_, err := r.create(machine("m1"))
				done <- err
			}()
			r.eventually(func() bool { return r.cloud.CallCounts()["ListServerNICs"] > 0 })
			if err := row.happens(r, r.onlyServer().ID); err != nil {
				t.Fatal(err)
			}
			wantCode(t, <-done, row.want)
			r.wantNothingLeft()
		})
	}
}

func TestAServerWithOneOfTwoNICsIsNotInitialized(t *testing.T) {
	r := newRigWithTwoNICs(t)
	r.mustCreate(machine("m1"))
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Count: 1, Status: http.StatusOK,
		Body: `{"items":[{"id":"` + secondNICID + `","networkId":"` + iaasmock.DefaultDualStackNetworkID + `","ipv4":"10.1.0.9"}]}`})
	_, err := r.initialize(machine("m1"))
	wantCode(t, err, codes.Unavailable)
	if _, err := r.initialize(machine("m1")); err != nil {
		t.Fatal(err)
	}
	for _, nic := range r.cloud.NICs() {
		if nic.ServerID != "" && len(nic.AllowedAddresses) != 1 {
			t.Errorf("NIC %s carries %v", nic.ID, nic.AllowedAddresses)
		}
	}
}

// What a lagging list shows of a server that is gone says nothing about it.
func TestDeleteMachineWithALaggingListAsksOnce(t *testing.T) {
	r := newRig(t, iaasmock.WithListLag(28*time.Second))
	response := r.mustCreate(machine("m1"))
	r.clock.Step(time.Minute)
	r.cloud.ResetCalls()
	if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
	if calls := r.cloud.CallCounts()["DeleteServer"]; calls != 1 {
		t.Errorf("%d deletions, want 1", calls)
	}
}

func TestDeleteMachineAsksAgainWhereADeletionIsStuck(t *testing.T) {
	r := newRig(t)
	r.mustCreate(machine("m1"))
	r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, NeverGone: true})
	if err := r.session().API.DeleteServer(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, r.onlyServer().ID).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := r.delete(r.deleted(machine("m1"))); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

func TestGetMachineStatusOfADeletedMachineDoesNotAskForInitialization(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	created := r.mustCreate(machine("m1"))
	_, err := r.status(withID(r.deleted(machine("m1")), created.ProviderID))
	wantCode(t, err, codes.OK)
}

func TestUserDataThatTheAPIRepeatsStaysOutOfErrors(t *testing.T) {
	const userData = "password: s3cr3t\ntoken: abc123.0123456789abcdef"
	for name, echo := range map[string]string{
		"plain": strings.ReplaceAll(userData, "\n", `\n`), "base64": base64.StdEncoding.EncodeToString([]byte(userData)), "a part": "abc123.0123456789abcdef",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.secret.Data["userData"] = []byte(userData)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusBadRequest, Body: `{"code":400,"msg":"wrong userData: ` + echo + `"}`})
			_, err := r.create(machine("m1"))
			wantCode(t, err, codes.InvalidArgument)
			for _, secret := range []string{"s3cr3t", "abc123.0123456789abcdef", base64.StdEncoding.EncodeToString([]byte(userData))[:20]} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q shows userData", err)
				}
			}
		})
	}
}
