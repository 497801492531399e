// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestWaitUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.provider()
		wait := func(of func(context.Context, string, string, string) error, id string) error {
			return of(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id)
		}
		wantCode(t, wait(p.WaitUntilServerRunning, "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"), codes.FailedPrecondition)
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

func TestTwoClassesWithDifferentSecretsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		m.UID = "first"
		first := r.mustCreate(m)
		m.UID = "second" // of another control cluster
		r.class.Name = "class-b"
		r.setSpec(func(spec map[string]any) {
			spec["networking"] = map[string]any{"networkId": iaasmock.SecondProjectNetworkID}
		})
		r.secret.Data["projectId"] = []byte(iaasmock.SecondProjectID)
		r.secret.Data["serviceAccountKey"] = keys().secondProject
		second := r.mustCreate(m)
		if len(r.cloud.Servers()) != 2 {
			t.Fatalf("servers: %+v", r.cloud.Servers())
		}
		wantCode(t, r.delete(withID(r.deleted(machine("m1")), first.ProviderID)), codes.InvalidArgument)
		r.mustDelete(withID(r.deleted(m), second.ProviderID))
		if left := r.onlyServer(); left.ProjectID != iaasmock.DefaultProjectID {
			t.Errorf("the server in %s is left", left.ProjectID)
		}
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
