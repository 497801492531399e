// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"

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
		nic := nicOf(t, r, r.onlyServer())
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

// It reads the NICs once, for the addresses; once more is only needed if somebody else's may be there.
func TestCreateMachineAddsAllowedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12", "10.250.0.1"} })
		created := r.mustCreate(machine("m1"))
		if nic := nicOf(t, r, r.onlyServer()); !cmp.Equal(nic.AllowedAddresses, []string{"100.64.0.0/12", "10.250.0.1"}) {
			t.Errorf("the NIC carries %v", nic.AllowedAddresses)
		}
		if len(created.Addresses) != 1 {
			t.Errorf("the addresses are %v, want one", created.Addresses)
		}
		counts := r.cloud.CallCounts()
		if reads := counts["ListServerNICs"] + counts["ListNics"]; reads != 1 || counts["UpdateNic"] != 1 {
			t.Errorf("the NICs were read %d times and changed %d times, want once", reads, counts["UpdateNic"])
		}
		for _, m := range []string{"", created.ProviderID} {
			wantCode(t, r.statusErr(withID(machine("m1"), m)), codes.OK)
		}
	})
}

// CreateMachine and InitializeMachine add what the NICs lack, keep what others allowed, and wait while the NIC API is
// out of order: once the Machine has its node label the manager does not see to an InitializeMachine that failed.
// What is refused would be refused again, and the user has to know.
func TestNICsGetTheAllowedAddresses(t *testing.T) {
	const ours = "100.64.0.0/12"
	fail := func(status int, operations ...string) func(string) []iaasmock.Fault {
		return func(string) (faults []iaasmock.Fault) {
			for _, operation := range operations {
				faults = append(faults, iaasmock.Fault{Operation: operation, Status: status, Duration: time.Minute})
			}
			return faults
		}
	}
	for name, row := range map[string]struct {
		others []string
		faults func(nic string) []iaasmock.Fault
		want   codes.Code
		says   string
		// updates is how many there are, others' among them; 0 is any number.
		updates int
	}{
		"others allowed some": {[]string{"192.168.7.0/24", "fd00::7/128"}, fail(0), codes.OK, "", 2},
		"they come late": {nil, func(string) []iaasmock.Fault {
			return []iaasmock.Fault{{Operation: "ListServerNICs", Status: http.StatusOK, Body: `{"items":[]}`, Count: 2}}
		}, codes.OK, "", 0},
		"an update does nothing": {nil, func(nic string) []iaasmock.Fault {
			return []iaasmock.Fault{{Operation: "UpdateNic", Count: 1, Status: http.StatusOK,
				Body: `{"id":"` + nic + `","networkId":"` + iaasmock.DefaultNetworkID + `","allowedAddresses":["10.9.9.9"]}`}}
		}, codes.Unavailable, "10.9.9.9", 0},
		"the NIC API is out of order": {nil, fail(503, "ListServerNICs", "ListNics", "UpdateNic"), codes.OK, "", 0},
		"updates are out of order":    {nil, fail(503, "UpdateNic"), codes.OK, "", 0},
		"an update is wrong":          {nil, fail(400, "UpdateNic"), codes.InvalidArgument, "", 0},
		"an update is forbidden":      {nil, fail(403, "UpdateNic"), codes.PermissionDenied, "", 0},
	} {
		for method, call := range map[string]func(*rig, *v1alpha1.Machine) error{
			"CreateMachine": (*rig).createErr, "InitializeMachine": (*rig).initErr,
		} {
			bubble(t, method+", "+name, func(t *testing.T) {
				r := newRig(t, iaasmock.WithAddressDelay(bootDuration+20*time.Second))
				r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{ours} })
				m := withID(machine("m1"), r.makeRunning("m1"))
				nic := nicOf(t, r, r.onlyServer()).ID
				r.allow(nic, row.others...)
				for _, fault := range row.faults(nic) {
					r.cloud.Inject(fault)
				}
				err := call(r, m)
				wantCode(t, err, row.want)
				if row.want != codes.OK {
					wantSaid(t, err.Error(), row.says)
					r.cloud.ClearFaults()
					wantCode(t, call(r, m), codes.OK)
				}
				if response, err := r.status(m); err != nil || len(response.Addresses) != 1 {
					t.Errorf("%+v, %v: want the NIC's address", response, err)
				}
				if row.updates > 0 {
					r.wantCalls("UpdateNic", row.updates)
				}
				if diff := cmp.Diff(append(row.others, ours), nicOf(t, r, r.onlyServer()).AllowedAddresses); diff != "" {
					t.Errorf("allowed addresses (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestInitializeMachineWithoutAServerIsNeverNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		wantCode(t, r.initErr(machine("m1")), codes.Unavailable)
		wantCode(t, r.initErr(withID(machine("m1"), providerIDOf(someServerID))), codes.Unavailable)
	})
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

// What the NICs were once seen to carry is not believed of a class that was changed meanwhile.
func TestAllowedAddressesThatCameBackAreLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		allowed := func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} }
		r.setSpec(allowed)
		m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
		r.setSpec(nil)
		r.allow(nicOf(t, r, r.onlyServer()).ID, "192.168.0.0/16") // somebody else's
		wantCode(t, r.statusErr(m), codes.OK)
		r.setSpec(allowed)
		wantCode(t, r.statusErr(m), codes.Uninitialized)
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
