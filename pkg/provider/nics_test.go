// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The addresses were added to the class after the server was made.
func TestInitializeMachineAddsAllowedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		created := r.mustCreate(machine("m1"))
		m := withID(machine("m1"), created.ProviderID)
		want := &driver.InitializeMachineResponse{
			ProviderID: created.ProviderID, NodeName: "m1", Addresses: created.Addresses}
		r.cloud.ResetCalls()
		for _, m := range []*v1alpha1.Machine{m, machine("m1")} {
			if response, err := r.initialize(m); err != nil || !cmp.Equal(want, response) {
				t.Errorf("without allowedAddresses: %+v, %v, want %+v", response, err, want)
			}
		}
		r.wantNoCalls()

		r.setSpec(func(spec map[string]any) {
			spec["allowedAddresses"] = []any{"100.64.0.0/12", "10.250.0.1", "fd00:abcd::1", "100.64.0.0/12"}
		})
		status, err := r.status(m)
		wantCode(t, err, codes.Uninitialized)
		if status == nil || status.ProviderID != created.ProviderID || status.NodeName != "m1" {
			t.Fatalf("Uninitialized comes with %+v, want a full response", status)
		}
		_, err = r.status(machine("m1")) // the manager would set the node label first
		wantCode(t, err, codes.NotFound)

		response, err := r.initialize(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, response); diff != "" {
			t.Errorf("response (-want +got):\n%s", diff)
		}
		nic := r.nicOf(r.onlyServer())
		if diff := cmp.Diff([]string{"100.64.0.0/12", "10.250.0.1", "fd00:abcd::1/128"}, nic.AllowedAddresses); diff != "" {
			t.Errorf("allowed addresses (-want +got):\n%s", diff)
		}
		wantCode(t, r.statusErr(m), codes.OK)

		r.cloud.ResetCalls()
		if _, err := r.initialize(m); err != nil {
			t.Fatal(err)
		}
		r.wantNoCalls()
	})
}

// CreateMachine and InitializeMachine add what the NICs lack, keep what others allowed, and wait while the NIC API is
// out of order: once the Machine has its node label the manager does not see to an InitializeMachine that failed.
// What is refused would be refused again, and the user has to know.
func TestNICsGetTheAllowedAddresses(t *testing.T) {
	const ours = "100.64.0.0/12"
	outage := fault{Status: http.StatusServiceUnavailable, Duration: time.Minute}
	patches := func(f fault) fault { f.Operation = "UpdateNic"; return f }
	rows := map[string]situation{}
	for name, row := range map[string]struct {
		others []string
		faults []fault
		want   provider.Reason
		answer string // to the first PATCH, which does nothing; "" is a PATCH that works
	}{
		"others allowed some":         {[]string{"192.168.7.0/24", "fd00::7/128"}, nil, "", ""},
		"they come late":              {nil, []fault{ofNICs(fault{Status: 200, Body: `{"items":[]}`, Count: 2})[0]}, "", ""},
		"an update does nothing":      {nil, nil, provider.ReasonNotReady, "10.9.9.9"},
		"the NIC API is out of order": {nil, append(ofNICs(outage), patches(outage)), "", ""},
		"updates are out of order":    {nil, []fault{patches(outage)}, "", ""},
		"an update is wrong":          {nil, []fault{patches(fault{Status: 400})}, provider.ReasonRequestRefused, ""},
		"an update is forbidden":      {nil, []fault{patches(fault{Status: 403})}, provider.ReasonNoPermission, ""},
	} {
		for method, call := range map[string]func(*rig, made) error{"creation": creates, "initialization": (*rig).initErr} {
			rows["16: "+name+", "+method] = situation{
				world: world{iaasmock.WithAddressDelay(bootDuration + 20*time.Second)},
				before: func(r *rig, m made) {
					r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{ours} })
					m.Spec.ProviderID = r.makeRunning("m1")
					nic := r.nicOf(r.onlyServer()).ID
					r.allow(nic, row.others...)
					if row.answer != "" {
						r.cloud.Inject(patches(fault{Count: 1, Status: http.StatusOK, Body: fmt.Sprintf(
							`{"id":%q,"networkId":%q,"allowedAddresses":[%q]}`, nic, iaasmock.DefaultNetworkID, row.answer)}))
					}
				}, faults: row.faults, call: call, reason: row.want, left: 1,
				then: func(r *rig, m made) {
					r.cloud.ClearFaults()
					if err := call(r, m); err != nil {
						r.t.Errorf("the next call: %v", err)
					}
					response, err := r.status(m)
					nic := r.nicOf(r.onlyServer())
					if err != nil || len(response.Addresses) != 1 || !cmp.Equal(append(row.others, ours), nic.AllowedAddresses) {
						r.t.Errorf("%+v, %v, and the NIC is %+v", response, err, nic)
					}
				},
			}
		}
	}
	rows["16: no server to initialize"] = situation{call: (*rig).initErr, reason: provider.ReasonNotReady}
	rows["16: its server is gone"] = situation{
		before: deletedByHand, call: (*rig).initErr, reason: provider.ReasonNotReady}
	runSituations(t, rows, 0)
}

func TestAServerWithSeveralNICs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secondNICID = "70000000-0000-4000-8000-0000000000ff" // in a dual-stack network
		catalogue := iaasmock.DefaultCatalogue()
		catalogue.NICs = append(catalogue.NICs, iaasmock.NIC{ID: secondNICID, ProjectID: iaasmock.DefaultProjectID,
			Region: iaasmock.DefaultRegion, NetworkID: iaasmock.DefaultDualStackNetworkID})
		r := newRig(t, iaasmock.WithCatalogue(catalogue))
		r.setSpec(func(spec map[string]any) {
			spec["networking"] = map[string]any{"nicIds": []any{secondNICID, iaasmock.DefaultNICID}}
			spec["allowedAddresses"] = []any{"100.64.0.0/12"}
		})
		// The second NIC comes late.
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Count: 2, Status: http.StatusOK,
			Body: `{"items":[{"id":"` + secondNICID + `","networkId":"` + iaasmock.DefaultDualStackNetworkID + `",` +
				`"ipv4":"10.1.0.9"}]}`})
		created := r.mustCreate(machine("m1"))
		if len(created.Addresses) != 3 { // one, and two of the dual-stack network
			t.Errorf("addresses are %v, want those of both NICs", created.Addresses)
		}
		for range 10 { // each reads the NICs, which come in another order
			r.restart()
			if again := r.mustCreate(machine("m1")); !cmp.Equal(created.Addresses, again.Addresses) {
				t.Fatalf("addresses are %v, and then %v", created.Addresses, again.Addresses)
			}
		}
		if _, err := r.initialize(machine("m1")); err != nil {
			t.Fatal(err)
		}
		for _, nic := range r.cloud.NICs() {
			if nic.ServerID != "" && !cmp.Equal(nic.AllowedAddresses, []string{"100.64.0.0/12"}) {
				t.Errorf("NIC %s carries %v", nic.ID, nic.AllowedAddresses)
			}
		}
	})
}

// A NIC without security lets every address pass, and the API refuses allowedAddresses for it.
func TestANICWithoutSecurityNeedsNoAllowedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := iaasmock.DefaultCatalogue()
		for i := range catalogue.NICs {
			catalogue.NICs[i].SecurityDisabled = true
		}
		r := newRig(t, iaasmock.WithCatalogue(catalogue))
		r.setSpec(func(spec map[string]any) {
			spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
			spec["allowedAddresses"] = []any{"100.64.0.0/12"}
		})
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		wantCode(t, r.statusErr(m), codes.OK)
		wantCode(t, r.initErr(m), codes.OK)
		r.wantCalls("UpdateNic", 0)
	})
}
