// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestGetMachineStatus(t *testing.T) {
	r := newRig(t)
	_, err := r.status(machine("m1"))
	wantCode(t, err, codes.NotFound)

	created := r.mustCreate(machine("m1"))
	for name, m := range map[string]string{
		"without a ProviderID": "", "with its ProviderID": created.ProviderID, "with the Node's": "stackit://" + r.onlyServer().ID,
	} {
		response, err := r.status(withID(machine("m1"), m))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := &driver.GetMachineStatusResponse{ProviderID: created.ProviderID, NodeName: "m1", Addresses: created.Addresses}
		if diff := cmp.Diff(want, response); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	if err := r.cloud.RemoveServer(r.onlyServer().ID); err != nil {
		t.Fatal(err)
	}
	_, err = r.status(withID(machine("m1"), created.ProviderID))
	wantCode(t, err, codes.NotFound)
	_, err = r.status(machine("m1"))
	wantCode(t, err, codes.NotFound)
}

// What CreateMachine has to settle must not look like a machine that is there.
func TestGetMachineStatusByNameLeavesUnfinishedServersToCreateMachine(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"being created": func(r *rig) { r.makeServer("m1", nil) },
		"failed": func(r *rig) {
			if err := r.cloud.SetServerStatus(r.makeServer("m1", nil), iaasmock.StatusError, "broken"); err != nil {
				r.t.Fatal(err)
			}
		},
		"several": func(r *rig) {
			for range 2 {
				if err := r.cloud.SetServerStatus(r.makeServer("m1", nil), iaasmock.StatusActive, ""); err != nil {
					r.t.Fatal(err)
				}
			}
		},
		"being deleted": func(r *rig) {
			if err := r.cloud.SetServerStatus(r.makeServer("m1", nil), iaasmock.StatusDeleting, ""); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			prepare(r)
			_, err := r.status(machine("m1"))
			wantCode(t, err, codes.NotFound)
		})
	}
}

func TestGetMachineStatusOfAServerBeingDeletedIsNotFound(t *testing.T) {
	r := newRig(t)
	created := r.mustCreate(machine("m1"))
	if err := r.cloud.SetServerStatus(r.onlyServer().ID, iaasmock.StatusDeleting, ""); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"", created.ProviderID} {
		_, err := r.status(withID(machine("m1"), m))
		wantCode(t, err, codes.NotFound)
	}
}

func TestInitializeMachineAddsAllowedAddresses(t *testing.T) {
	r := newRig(t)
	created := r.mustCreate(machine("m1"))
	r.setSpec(func(spec map[string]any) {
		spec["allowedAddresses"] = []any{"100.64.0.0/12", "10.250.0.1", "fd00:abcd::1", "100.64.0.0/12"}
	})
	status, err := r.status(machine("m1"))
	wantCode(t, err, codes.Uninitialized)
	if status == nil || status.ProviderID != created.ProviderID || status.NodeName != "m1" {
		t.Fatalf("Uninitialized comes with %+v, want a full response", status)
	}

	response, err := r.initialize(machine("m1"))
	if err != nil {
		t.Fatal(err)
	}
	want := &driver.InitializeMachineResponse{ProviderID: created.ProviderID, NodeName: "m1", Addresses: created.Addresses}
	if diff := cmp.Diff(want, response); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	nic := nicOf(t, r, r.onlyServer())
	if diff := cmp.Diff([]string{"100.64.0.0/12", "10.250.0.1", "fd00:abcd::1/128"}, nic.AllowedAddresses); diff != "" {
		t.Errorf("allowed addresses (-want +got):\n%s", diff)
	}
	_, err = r.status(machine("m1"))
	wantCode(t, err, codes.OK)

	r.cloud.ResetCalls()
	if _, err := r.initialize(withID(machine("m1"), created.ProviderID)); err != nil {
		t.Fatal(err)
	}
	if calls := r.cloud.CallCounts(); len(calls) != 0 {
		t.Errorf("once more made %v, want no calls", calls)
	}
}

func TestInitializeMachineKeepsWhatOthersAllowed(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) {
		spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
		spec["allowedAddresses"] = []any{"100.64.0.0/12"}
	})
	r.mustCreate(machine("m1"))
	r.allow(iaasmock.DefaultNICID, "192.168.7.0/24", "fd00::7/128")
	if _, err := r.initialize(machine("m1")); err != nil {
		t.Fatal(err)
	}
	nic := nicOf(t, r, r.onlyServer())
	if diff := cmp.Diff([]string{"192.168.7.0/24", "fd00::7/128", "100.64.0.0/12"}, nic.AllowedAddresses); diff != "" {
		t.Errorf("allowed addresses (-want +got):\n%s", diff)
	}
}

func TestInitializeMachineWithoutAllowedAddressesMakesNoCall(t *testing.T) {
	r := newRig(t)
	created := r.mustCreate(machine("m1"))
	r.cloud.ResetCalls()
	for _, m := range []string{"", created.ProviderID} {
		response, err := r.initialize(withID(machine("m1"), m))
		if err != nil {
			t.Fatal(err)
		}
		if response.ProviderID != created.ProviderID || response.NodeName != "m1" {
			t.Errorf("response is %+v", response)
		}
	}
	if calls := r.cloud.CallCounts(); len(calls) != 0 {
		t.Errorf("made %v, want no calls", calls)
	}
}

func TestInitializeMachineWithoutAServerIsNeverNotFound(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	_, err := r.initialize(machine("m1"))
	wantCode(t, err, codes.Unavailable)
	_, err = r.initialize(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"))
	wantCode(t, err, codes.Unavailable)
}

func TestInitializeMachineTouchesNoForeignServer(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	foreign := r.makeServer("m1", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
	_, err := r.initialize(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/"+foreign))
	wantCode(t, err, codes.FailedPrecondition)
	if nic := nicOf(t, r, r.onlyServer()); len(nic.AllowedAddresses) != 0 {
		t.Errorf("the foreign server's NIC carries %v", nic.AllowedAddresses)
	}
}

func TestListMachinesListsTheClassWithinTheCluster(t *testing.T) {
	r := newRig(t)
	mine := r.makeServer("m1", nil)
	r.makeServer("m2", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
	r.makeServer("m3", func(labels map[string]any) { labels[provider.StackitMachineClassLabel] = "class-b" })
	r.makeServer("m4", func(labels map[string]any) { delete(labels, provider.StackitMachineLabel) })
	r.makeServer("m5", func(labels map[string]any) { delete(labels, clusterLabel) })
	if err := r.cloud.SetServerStatus(r.makeServer("m6", nil), iaasmock.StatusDeleting, ""); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"stackit://" + iaasmock.DefaultProjectID + "/" + mine: "m1"}
	if diff := cmp.Diff(want, r.list()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestListMachinesWithoutAClusterLabelLeavesClustersAlone(t *testing.T) {
	r := newRig(t)
	r.makeServer("m1", nil)
	mine := r.makeServer("m2", func(labels map[string]any) { delete(labels, clusterLabel) })
	r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
	want := map[string]string{"stackit://" + iaasmock.DefaultProjectID + "/" + mine: "m2"}
	if diff := cmp.Diff(want, r.list()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestGetVolumeIDs(t *testing.T) {
	r := newRig(t)
	csi := func(driver, handle string) *corev1.PersistentVolumeSpec {
		return &corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}}
	}
	response, err := r.driver.GetVolumeIDs(t.Context(), &driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{
		csi("block-storage.csi.stackit.cloud", "v1"), csi("cinder.csi.openstack.org", "v2"), csi("nfs.csi.k8s.io", "v3"), {}, nil,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1", "v2"}, response.VolumeIDs); diff != "" {
		t.Errorf("volume IDs (-want +got):\n%s", diff)
	}
}

func TestWrongInputsNameEveryField(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) {
		spec["machineType"] = ""
		spec["imageId"] = "no-uuid"
		spec["networking"] = map[string]any{"networkId": 5}
		spec["bootVolume"] = map[string]any{"size": 0}
	})
	r.secret.Data["projectId"] = []byte("my-project")
	r.secret.Data["serviceAccountKey"] = []byte("{}")
	delete(r.secret.Data, "region")
	// The manager asks for the status first: that must tell as much.
	_, statusErr := r.status(machine("m1"))
	_, createErr := r.create(machine("m1"))
	for name, err := range map[string]error{"GetMachineStatus": statusErr, "CreateMachine": createErr} {
		wantCode(t, err, codes.InvalidArgument)
		for _, field := range []string{"providerSpec.region", "providerSpec.machineType", "providerSpec.imageId", "providerSpec.networking",
			"providerSpec.bootVolume.size", "secret.projectId", "secret.serviceAccountKey"} {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %q does not name %s", name, err, field)
			}
		}
	}
	if calls := r.cloud.CallCounts(); len(calls) != 0 {
		t.Errorf("made %v, want no calls", calls)
	}
}

func TestMissingInputs(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"CreateMachine(nil)":     func() error { _, err := r.driver.CreateMachine(ctx, nil); return err },
		"InitializeMachine(nil)": func() error { _, err := r.driver.InitializeMachine(ctx, nil); return err },
		"GetMachineStatus(nil)":  func() error { _, err := r.driver.GetMachineStatus(ctx, nil); return err },
		"DeleteMachine(nil)":     func() error { _, err := r.driver.DeleteMachine(ctx, nil); return err },
		"ListMachines(nil)":      func() error { _, err := r.driver.ListMachines(ctx, nil); return err },
		"no class": func() error {
			_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machine("m1"), Secret: r.secret})
			return err
		},
		"no Secret": func() error {
			_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machine("m1"), MachineClass: r.class})
			return err
		},
		"empty Secret": func() error {
			_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machine("m1"), MachineClass: r.class, Secret: &corev1.Secret{}})
			return err
		},
		"no name":       func() error { _, err := r.create(machine("")); return err },
		"too long name": func() error { _, err := r.create(machine(strings.Repeat("m", 64))); return err },
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), codes.InvalidArgument) })
	}
}

func TestGetMachineStatusOfAnothersServerIsNoSuccess(t *testing.T) {
	r := newRig(t)
	foreign := r.makeServer("conflict-1", func(labels map[string]any) { labels[provider.StackitMachineLabel] = "conflict-1" })
	_, err := r.status(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/"+foreign))
	wantCode(t, err, codes.FailedPrecondition)
	if !strings.Contains(err.Error(), `"conflict-1"`) || !strings.Contains(err.Error(), `"m1"`) {
		t.Errorf("%q does not name the label as it is and as it must be", err)
	}
}

// The addresses are not worth a failure where nothing else is wanted of the NICs.
func TestGetMachineStatusNeedsNoNICsWithoutAllowedAddresses(t *testing.T) {
	r := newRig(t)
	r.mustCreate(machine("m1"))
	r.restart()
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Status: http.StatusForbidden})
	_, err := r.status(machine("m1"))
	wantCode(t, err, codes.OK)
}

func TestInitializeMachineWaitsForNICsThatComeLate(t *testing.T) {
	r := newRig(t, iaasmock.WithAddressDelay(bootDuration+20*time.Second))
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	none := iaasmock.Fault{Operation: "ListServerNICs", Status: http.StatusOK, Body: `{"items":[]}`, Count: 2}
	r.cloud.Inject(none)
	if created := r.mustCreate(machine("m1")); len(created.Addresses) != 1 {
		t.Errorf("addresses are %v, want the NIC's", created.Addresses)
	}
	none.Count = 1
	r.cloud.Inject(none)
	_, err := r.initialize(machine("m1"))
	wantCode(t, err, codes.Unavailable)
	if _, err := r.initialize(machine("m1")); err != nil {
		t.Error(err)
	}
}

func TestInitializeMachineOfAServerWithSeveralNICs(t *testing.T) {
	r := newRigWithTwoNICs(t)
	created := r.mustCreate(machine("m1"))
	if len(created.Addresses) != 3 { // one, and two of the dual-stack network
		t.Errorf("addresses are %v, want those of both NICs", created.Addresses)
	}
	if again := r.mustCreate(machine("m1")); !cmp.Equal(created.Addresses, again.Addresses) {
		t.Errorf("addresses are %v, and then %v", created.Addresses, again.Addresses)
	}
	if _, err := r.initialize(machine("m1")); err != nil {
		t.Fatal(err)
	}
	for _, nic := range r.cloud.NICs() {
		if nic.ServerID != "" && !cmp.Equal(nic.AllowedAddresses, []string{"100.64.0.0/12"}) {
			t.Errorf("NIC %s carries %v", nic.ID, nic.AllowedAddresses)
		}
	}
}

func TestInitializeMachineDoubtsAnUpdateThatDidNothing(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	r.mustCreate(machine("m1"))
	nic := nicOf(t, r, r.onlyServer()).ID
	r.cloud.Inject(iaasmock.Fault{Operation: "UpdateNic", Count: 1, Status: http.StatusOK,
		Body: `{"id":"` + nic + `","networkId":"` + iaasmock.DefaultNetworkID + `","allowedAddresses":["10.9.9.9"]}`})
	_, err := r.initialize(machine("m1"))
	wantCode(t, err, codes.Internal)
	for _, want := range []string{nic, "100.64.0.0/12", "10.9.9.9"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

// A list that lags may still show as CREATING the server that CreateMachine saw run.
// Answered OK, the manager would never call InitializeMachine.
func TestGetMachineStatusAsksForTheInitializationInAnyState(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	created := r.mustCreate(machine("m1"))
	r.restart()
	if err := r.cloud.SetServerStatus(r.onlyServer().ID, iaasmock.StatusCreating, ""); err != nil {
		t.Fatal(err)
	}
	_, err := r.status(withID(machine("m1"), created.ProviderID))
	wantCode(t, err, codes.Uninitialized)
	if _, err := r.initialize(withID(machine("m1"), created.ProviderID)); err != nil {
		t.Fatal(err)
	}
	_, err = r.status(withID(machine("m1"), created.ProviderID))
	wantCode(t, err, codes.OK)
}

// The manager would take the Machine for created and never call InitializeMachine.
func TestGetMachineStatusDoubtsASingle404(t *testing.T) {
	r := newRig(t)
	created := r.mustCreate(machine("m1"))
	r.restart()
	r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Count: 1, Status: http.StatusNotFound})
	_, err := r.status(withID(machine("m1"), created.ProviderID))
	wantCode(t, err, codes.Unavailable)
}
