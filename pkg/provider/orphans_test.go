// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the orphan collector asks for.

// Somebody wrote another Machine's name into a machine label: the orphan collector takes the
// running server for one that its Machine does not know.
func TestALabelEditedByHandCostsNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("m1"))
		id := r.onlyServer().ID
		r.relabel(id, map[string]any{provider.StackitMachineLabel: "m2"})
		if name := r.list()[providerIDOf(id)]; name != "m2" {
			t.Errorf("ListMachines lists it as %q", name)
		}
		wantCode(t, r.delete(orphan("m2", id)), codes.FailedPrecondition)
		if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
			t.Errorf("the server is %s", left.Status)
		}
	})
}

func TestOrphansHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithDeleteDuration(40*time.Second))
		for i := range 20 {
			r.makeServer(fmt.Sprint("orphan-", i), nil)
		}
		<-time.After(time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Server: "orphan-3", Count: 1, NeverGone: true})
		run := func() (took time.Duration, listed int) {
			began := time.Now()
			found := r.list()
			for providerID, name := range found {
				if err := r.delete(withID(orphan(name, ""), providerID)); err != nil {
					t.Error(err)
				}
			}
			return time.Since(began), len(found)
		}
		r.cloud.ResetCalls()
		took, _ := run()
		if took > 10*time.Second {
			t.Errorf("the run took %s, want at most 10 s", took)
		}
		counts := r.cloud.CallCounts()
		if calls := counts["GetServer"] + counts["DeleteServer"]; calls > 40 {
			t.Errorf("%d calls, want at most 40: %v", calls, counts)
		}
		<-time.After(time.Minute)
		if left := r.onlyServer(); left.Name != "orphan-3" || left.Status != iaasmock.StatusDeleting {
			t.Errorf("%s is %s, want orphan-3 stuck", left.Name, left.Status)
		}
		if _, listed := run(); listed != 1 {
			t.Errorf("%d orphans are listed, want the stuck one", listed)
		}
		<-time.After(time.Minute)
		r.wantNothingLeft()
	})
}

// An orphan's DELETE that hangs ends soon: the manager deletes one after the other.
func TestAnOrphanThatHangsHoldsUpTheRunForSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.makeServer("m1", nil)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Delay: time.Hour})
		began := time.Now()
		wantCode(t, r.delete(orphan("m1", id)), codes.DeadlineExceeded)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestDeleteMachineOfNothingInParticular(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("m1"))
		wantCode(t, r.delete(machine("m1")), codes.InvalidArgument)
		wantCode(t, r.delete(&v1alpha1.Machine{ObjectMeta: orphan("m1", "").ObjectMeta}), codes.InvalidArgument)
		r.onlyServer()
	})
}
