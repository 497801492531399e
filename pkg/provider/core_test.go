// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The manager passes a context without a deadline: every call has its own.
func TestEveryCallEnds(t *testing.T) {
	silent := iaasmock.Fault{Operation: iaasmock.OperationIaaS, Delay: 24 * time.Hour}
	neverBoots := iaasmock.Fault{Operation: "CreateServer", NeverBoots: true}
	for name, row := range map[string]struct {
		fault  iaasmock.Fault
		call   func(*rig) error
		within time.Duration
		want   codes.Code
	}{
		"CreateMachine whose NICs can never be changed": {
			iaasmock.Fault{Operation: "UpdateNic", Status: http.StatusServiceUnavailable},
			func(r *rig) error { return r.createErr(machine("m1")) }, 10 * time.Minute, codes.DeadlineExceeded},
		"CreateMachine without a creationTimestamp": {neverBoots,
			func(r *rig) error { return r.createErr(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}) },
			10 * time.Minute, codes.DeadlineExceeded},
		"InitializeMachine after 13 of 20 minutes": {neverBoots, func(r *rig) error {
			m := withID(machine("m1"), providerIDOf(r.makeServer("m1", nil)))
			m.CreationTimestamp.Time = m.CreationTimestamp.Add(-13 * time.Minute)
			return r.initErr(m)
		}, 7 * time.Minute, codes.DeadlineExceeded},
		"WaitUntilServerRunning": {neverBoots, func(r *rig) error {
			id := r.makeServer("m1", nil)
			r.list() // opens a session
			return r.provider().WaitUntilServerRunning(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id)
		}, 10 * time.Minute, codes.DeadlineExceeded},
		"DeleteMachine whose server never goes": {iaasmock.Fault{Operation: "DeleteServer", NeverGone: true},
			func(r *rig) error { return r.delete(withID(r.deleted(machine("m1")), r.makeRunning("m1"))) }, 10 * time.Minute,
			codes.DeadlineExceeded},
		"GetMachineStatus of a silent API": {silent,
			func(r *rig) error { return r.statusErr(withID(machine("m1"), providerIDOf(someServerID))) }, 2 * time.Minute,
			codes.Unavailable},
		"ListMachines of a silent API": {silent, (*rig).listErr, 30 * time.Second, codes.Unavailable},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			r.cloud.Inject(row.fault)
			start := time.Now()
			err := row.call(r)
			wantCode(t, err, row.want)
			if row.fault.Operation == "UpdateNic" { // the last state, and the call that failed
				wantSaid(t, err.Error(), "is ACTIVE, but", "updating a NIC: status 503")
			}
			wantWithin(t, start, row.within+30*time.Second)
		})
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	for name, fault := range map[string]fault{
		"while the server boots": {NeverBoots: true}, "while the API is silent": {Delay: 1 << 60},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(posts(fault))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(8*time.Second, cancel)
			began := time.Now()
			_, err := r.driver.CreateMachine(ctx,
				&driver.CreateMachineRequest{Machine: machine("m1"), MachineClass: r.class, Secret: r.secret})
			wantCode(t, err, codes.Aborted)
			wantWithin(t, began, 8*time.Second)
		})
	}
}

func TestListMachinesListsTheClassWithinTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		mine := r.makeServer("m1", nil)
		r.makeServer("m2", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		r.makeServer("m3", func(labels map[string]any) { labels[provider.StackitMachineClassLabel] = "class-b" })
		r.makeServer("m4", func(labels map[string]any) { delete(labels, provider.StackitMachineLabel) })
		alone := r.makeServer("m5", func(labels map[string]any) { delete(labels, clusterLabel) })
		goes := r.makeServer("m6", nil) // if its deletion hangs, the orphan collector asks again
		r.setStatus(goes, iaasmock.StatusDeleting, "")
		r.setStatus(r.makeServer("m7", nil), "DELETED", "")
		want := map[string]string{providerIDOf(mine): "m1", providerIDOf(goes): "m6"}
		if diff := cmp.Diff(want, r.list()); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
		if diff := cmp.Diff(map[string]string{providerIDOf(alone): "m5"}, r.list()); diff != "" {
			t.Errorf("list without a cluster label (-want +got):\n%s", diff)
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
		response, err := r.driver.GetVolumeIDs(t.Context(),
			&driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{
				csi("block-storage.csi.stackit.cloud", "v1"), csi("cinder.csi.openstack.org", "v2"),
				csi("nfs.csi.k8s.io", "v3"), {}, nil,
				{PersistentVolumeSource: corev1.PersistentVolumeSource{
					Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "v4"}}},
			}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"v1", "v2", "v4"}, response.VolumeIDs); diff != "" {
			t.Errorf("volume IDs (-want +got):\n%s", diff)
		}
	})
}

func TestGenerateMachineClassForMigrationIsUnimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := newRig(t).provider().GenerateMachineClassForMigration(t.Context(),
			&driver.GenerateMachineClassForMigrationRequest{})
		if decoded, ok := status.FromError(err); !ok || decoded.Code() != codes.Unimplemented { // no failure, and no reason
			t.Errorf("the manager is told %v, want %s", err, codes.Unimplemented)
		}
	})
}

func TestWaitUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.provider()
		wait := func(of func(context.Context, string, string, string) error, id string) error {
			return of(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id)
		}
		wantCode(t, wait(p.WaitUntilServerRunning, someServerID), codes.InvalidArgument)
		r.list() // opens a session
		id := r.makeServer("m1", nil)
		if err := wait(p.WaitUntilServerRunning, id); err != nil {
			t.Fatal(err)
		}
		if r.onlyServer().Status != iaasmock.StatusActive {
			t.Error("not running yet")
		}
		time.AfterFunc(3*time.Second, func() { r.deleteByHand(id) })
		began := time.Now()
		if err := wait(p.WaitUntilServerDeleted, id); err != nil {
			t.Fatal(err)
		}
		wantWithin(t, began, 20*time.Second)
		wantCode(t, wait(p.WaitUntilServerRunning, id), codes.NotFound)
	})
}

func TestARotatedKeyIsUsedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		created := r.mustCreate(machine("m1"))
		if err := r.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, keys().rotated); err != nil {
			t.Fatal(err)
		}
		if err := r.cloud.RevokeServiceAccountKey(keys().first); err != nil {
			t.Fatal(err)
		}
		wantCode(t, r.statusErr(withID(machine("m1"), created.ProviderID)), codes.Unauthenticated)
		r.secret.Data["serviceAccountKey"] = keys().rotated
		again := r.mustCreate(machine("m1"))
		if again.ProviderID != created.ProviderID {
			t.Errorf("the machine got another server: %s", again.ProviderID)
		}
		r.mustDelete(withID(r.deleted(machine("m1")), created.ProviderID))
		r.wantNothingLeft()
	})
}

func TestGetMachineStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		wantCode(t, r.statusErr(machine("m1")), codes.NotFound)

		created := r.mustCreate(machine("m1"))
		for name, m := range map[string]string{
			"without a ProviderID": "", "with its ProviderID": created.ProviderID,
			"with the Node's": "stackit://" + r.onlyServer().ID,
		} {
			response, err := r.status(withID(machine("m1"), m))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := &driver.GetMachineStatusResponse{ProviderID: created.ProviderID, NodeName: "m1",
				Addresses: created.Addresses}
			if diff := cmp.Diff(want, response); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}

		<-time.After(time.Minute) // past settling
		id := r.onlyServer().ID
		for _, goes := range []func(){
			func() { r.setStatus(id, iaasmock.StatusDeleting, "") }, func() { r.removeServer(id) },
		} {
			goes()
			wantCode(t, r.statusErr(withID(machine("m1"), created.ProviderID)), codes.NotFound)
			wantCode(t, r.statusErr(machine("m1")), codes.NotFound)
		}
	})
}

// A list that lags may still show as CREATING the server that CreateMachine saw run.
// Answered OK, the manager would never call InitializeMachine.
func TestGetMachineStatusAsksForTheInitializationInAnyState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		m := withID(machine("m1"), r.makeRunning("m1"))
		id := r.onlyServer().ID
		r.setStatus(id, iaasmock.StatusCreating, "")
		wantCode(t, r.statusErr(m), codes.Uninitialized)
		wantCode(t, r.statusErr(r.deleted(m)), codes.OK) // it needs none any more
		r.setStatus(id, iaasmock.StatusActive, "")
		wantCode(t, r.initErr(m), codes.OK)
		wantCode(t, r.statusErr(m), codes.OK)
	})
}
