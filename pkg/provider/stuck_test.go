// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A failed server whose deletion is stuck would stay for as long as its machine lives.
func TestCreateMachineUrgesADeletionThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigInMemory(t)
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError, ErrorMessage: "image is broken"})
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Count: 1, NeverGone: true})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.Internal)
		stuck := r.onlyServer()
		if stuck.Status != iaasmock.StatusDeleting {
			t.Fatalf("the failed server is %s, want it stuck", stuck.Status)
		}
		_, err = r.status(machine("m1"))
		wantCode(t, err, codes.NotFound)
		r.mustCreate(machine("m1"))
		if r.onlyServer().ID == stuck.ID {
			t.Error("the failed server is kept")
		}
	})
}
