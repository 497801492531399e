// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestGetMachineStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		wantCode(t, r.statusErr(machine("m1")), codes.NotFound)

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

		<-time.After(time.Minute) // past settling
		r.removeServer(r.onlyServer().ID)
		wantCode(t, r.statusErr(withID(machine("m1"), created.ProviderID)), codes.NotFound)
		wantCode(t, r.statusErr(machine("m1")), codes.NotFound)
	})
}

// CreateMachine looks itself, and finishes what is unfinished. Any answer but NotFound
// would give the Machine its node label first.
func TestGetMachineStatusWithoutAProviderIDLooksForNothing(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"no server":     func(*rig) {},
		"being created": func(r *rig) { r.makeServer("m1", nil) },
		"ACTIVE":        func(r *rig) { r.makeRunning("m1") },
		"several":       func(r *rig) { r.makeRunning("m1"); r.makeRunning("m1") },
		"no list works": func(r *rig) { r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", DropBefore: true}) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			prepare(r)
			r.cloud.ResetCalls()
			wantCode(t, r.statusErr(machine("m1")), codes.NotFound)
			r.wantNoCalls()
		})
	}
}

func TestGetMachineStatusOfAServerBeingDeletedIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		created := r.mustCreate(machine("m1"))
		r.setStatus(r.onlyServer().ID, iaasmock.StatusDeleting, "")
		for _, m := range []string{"", created.ProviderID} {
			wantCode(t, r.statusErr(withID(machine("m1"), m)), codes.NotFound)
		}
	})
}

// Without a target cluster the manager never asks for the addresses again.
func TestGetMachineStatusWithoutKnownAddressesIsNoSuccess(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		want  codes.Code
	}{
		"no address yet":    {iaasmock.Fault{Status: http.StatusOK, Body: `{"items":[]}`}, codes.Unavailable},
		"out of order":      {iaasmock.Fault{Status: http.StatusServiceUnavailable}, codes.Unavailable},
		"connections reset": {iaasmock.Fault{DropBefore: true}, codes.Unavailable},
		"unauthorized":      {iaasmock.Fault{Status: http.StatusUnauthorized}, codes.Unauthenticated},
		"forbidden":         {iaasmock.Fault{Status: http.StatusForbidden}, codes.PermissionDenied},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			r.restart()
			for _, row.fault.Operation = range []string{"ListServerNICs", "ListNics"} {
				r.cloud.Inject(row.fault)
			}
			m := withID(machine("m1"), created.ProviderID)
			wantCode(t, r.statusErr(m), row.want)
			r.cloud.ClearFaults()
			<-time.After(2 * time.Second) // the backoff of reads that fail both ways
			response, err := r.status(m)
			if err != nil || !cmp.Equal(response.Addresses, created.Addresses) {
				t.Errorf("status is %+v, %v", response, err)
			}
		})
	}
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
		if _, err := r.initialize(m); err != nil {
			t.Fatal(err)
		}
		wantCode(t, r.statusErr(m), codes.OK)
	})
}

// The server is younger than the lists lag: none shows it, and one random 404 must not be
// confirmed by that. Told NotFound, the manager would never call InitializeMachine.
func TestGetMachineStatusOfAYoungServerDoubtsA404(t *testing.T) {
	for name, restart := range map[string]func(*rig){
		"made by this process":  func(*rig) {},
		"made by a predecessor": (*rig).restartNow,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(25*time.Second), iaasmock.WithBootDuration(5*time.Second))
			m := machine("m1")
			m.Spec.ProviderID = r.mustCreate(m).ProviderID
			<-time.After(10*time.Second - time.Since(r.onlyServer().CreatedAt))
			restart(r)
			r.cloud.Inject(randomNotFound)
			wantCode(t, r.statusErr(m), codes.Unavailable)
			wantCode(t, r.statusErr(m), codes.OK)
		})
	}
}
