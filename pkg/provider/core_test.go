// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The manager passes a context without a deadline: every call has its own.
func TestEveryCallEnds(t *testing.T) {
	silent := iaasmock.Fault{Operation: iaasmock.OperationIaaS, Delay: 24 * time.Hour}
	for name, row := range map[string]struct {
		fault  iaasmock.Fault
		call   func(*rig) error
		within time.Duration
		want   codes.Code
	}{
		"CreateMachine whose server never boots": {iaasmock.Fault{Operation: "CreateServer", NeverBoots: true},
			func(r *rig) error { _, err := r.create(machine("m1")); return err }, 10 * time.Minute, codes.DeadlineExceeded},
		"CreateMachine whose NICs can never be changed": {iaasmock.Fault{Operation: "UpdateNic", Status: http.StatusServiceUnavailable},
			func(r *rig) error { _, err := r.create(machine("m1")); return err }, 10 * time.Minute, codes.DeadlineExceeded},
		"InitializeMachine whose NICs can never be changed": {iaasmock.Fault{Operation: "UpdateNic", Status: http.StatusServiceUnavailable},
			func(r *rig) error { _, err := r.initialize(withID(machine("m1"), r.makeRunning("m1"))); return err }, 10 * time.Minute, codes.DeadlineExceeded},
		"DeleteMachine whose server never goes": {iaasmock.Fault{Operation: "DeleteServer", NeverGone: true},
			func(r *rig) error { return r.delete(withID(r.deleted(machine("m1")), r.makeRunning("m1"))) }, 10 * time.Minute, codes.DeadlineExceeded},
		"GetMachineStatus of a silent API": {silent,
			func(r *rig) error { _, err := r.status(withID(machine("m1"), providerIDOf(someServerID))); return err }, 2 * time.Minute, codes.DeadlineExceeded},
		"ListMachines of a silent API": {silent, func(r *rig) error {
			_, err := r.driver.ListMachines(context.Background(), &driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
			return err
		}, 2 * time.Minute, codes.DeadlineExceeded},
		"InitializeMachine of a silent API": {silent,
			func(r *rig) error {
				_, err := r.initialize(withID(machine("m1"), providerIDOf(someServerID)))
				return err
			}, 10 * time.Minute, codes.Unavailable},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			r.cloud.Inject(row.fault)
			start := time.Now()
			wantCode(t, row.call(r), row.want)
			if took := time.Since(start); took > row.within+30*time.Second {
				t.Errorf("ended after %s, want %s", took, row.within)
			}
		})
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"while the server boots":    {Operation: "CreateServer", NeverBoots: true},
		"while the API is silent":   {Operation: "CreateServer", Delay: 1 << 60},
		"while reads fail for ever": {Operation: "GetServer", DropBefore: true},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(fault)
			ctx, cancel := context.WithCancel(t.Context())
			done := start(func() error {
				_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machine("m1"), MachineClass: r.class, Secret: r.secret})
				return err
			})
			<-time.After(8 * time.Second)
			cancel()
			wantCode(t, <-done, codes.Aborted)
		})
	}
}

// The manager comes back in seconds, with the Secret as it is then.
func TestAKeyRevokedDuringAWaitEndsItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
		done := r.startCreate(machine("m1"))
		<-time.After(15 * time.Second)
		if err := r.cloud.RevokeServiceAccountKey(keys().first); err != nil {
			t.Fatal(err)
		}
		wantCode(t, <-done, codes.Unavailable)
		r.onlyServer()
	})
}

func TestListMachinesListsTheClassWithinTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		mine := r.makeServer("m1", nil)
		r.makeServer("m2", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		r.makeServer("m3", func(labels map[string]any) { labels[provider.StackitMachineClassLabel] = "class-b" })
		r.makeServer("m4", func(labels map[string]any) { delete(labels, provider.StackitMachineLabel) })
		r.makeServer("m5", func(labels map[string]any) { delete(labels, clusterLabel) })
		goes := r.makeServer("m6", nil) // if its deletion hangs, the orphan collector asks again
		if err := r.cloud.SetServerStatus(goes, iaasmock.StatusDeleting, ""); err != nil {
			t.Fatal(err)
		}
		if err := r.cloud.SetServerStatus(r.makeServer("m7", nil), "DELETED", ""); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{providerIDOf(mine): "m1", providerIDOf(goes): "m6"}
		if diff := cmp.Diff(want, r.list()); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
}

func TestListMachinesWithoutAClusterLabelLeavesClustersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.makeServer("m1", nil)
		mine := r.makeServer("m2", func(labels map[string]any) { delete(labels, clusterLabel) })
		r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
		want := map[string]string{"stackit://" + iaasmock.DefaultProjectID + "/" + mine: "m2"}
		if diff := cmp.Diff(want, r.list()); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
}

func TestGetVolumeIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

func TestGenerateMachineClassForMigrationIsUnimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, err := r.provider().GenerateMachineClassForMigration(t.Context(), &driver.GenerateMachineClassForMigrationRequest{})
		if decoded, ok := status.FromError(err); !ok || decoded.Code() != codes.Unimplemented { // no failure, and no reason
			t.Errorf("the manager is told %v, want %s", err, codes.Unimplemented)
		}
	})
}

// A server that was seen, and goes while it is waited for.
func TestWaitUntilServerDeletedSeesItGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.list() // opens a session
		id := r.makeServer("m1", nil)
		<-time.After(20 * time.Second)
		time.AfterFunc(3*time.Second, func() { r.deleteByHand(id) })
		start := time.Now()
		if err := r.provider().WaitUntilServerDeleted(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("noticed after %s", took)
		}
	})
}
