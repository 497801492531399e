// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

type panickingSPI struct{}

func (panickingSPI) Session(spi.Credentials) (*spi.Session, error) { panic("s3cr3t") }

func TestAPanicIsAnErrorWithoutDetails(t *testing.T) {
	r := newRig(t)
	r.driver = provider.NewProvider(panickingSPI{})
	for name, call := range map[string]func() error{
		"CreateMachine":     func() error { _, err := r.create(machine("m1")); return err },
		"InitializeMachine": func() error { _, err := r.initialize(machine("m1")); return err },
		"GetMachineStatus":  func() error { _, err := r.status(machine("m1")); return err },
		"DeleteMachine":     func() error { return r.delete(machine("m1")) },
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			wantCode(t, err, codes.Internal)
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q shows what the panic said", err)
			}
		})
	}
}

// Requests point into the manager's caches.
func TestRequestsAreNotChanged(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
	m := machine("m1")
	machineBefore, classBefore, secretBefore := m.DeepCopy(), r.class.DeepCopy(), r.secret.DeepCopy()
	created := r.mustCreate(m)
	if _, err := r.initialize(m); err != nil {
		t.Fatal(err)
	}
	if _, err := r.status(m); err != nil {
		t.Fatal(err)
	}
	r.list()
	if err := r.delete(m); err != nil {
		t.Fatal(err)
	}
	gone := withID(r.deleted(m), created.ProviderID)
	goneBefore := gone.DeepCopy()
	if err := r.delete(gone); err != nil {
		t.Fatal(err)
	}
	for name, diff := range map[string]string{
		"Machine": cmp.Diff(machineBefore, m), "deleted Machine": cmp.Diff(goneBefore, gone),
		"MachineClass": cmp.Diff(classBefore, r.class), "Secret": cmp.Diff(secretBefore, r.secret),
	} {
		if diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", name, diff)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"while the server boots":    {Operation: "CreateServer", NeverBoots: true},
		"while the API is silent":   {Operation: "CreateServer", Delay: 1 << 60},
		"while reads fail for ever": {Operation: "GetServer", DropBefore: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(fault)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				_, err := r.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machine("m1"), MachineClass: r.class, Secret: r.secret})
				done <- err
			}()
			r.eventually(func() bool { return fault.Delay > 0 || r.cloud.CallCounts()["CreateServer"] > 0 })
			cancel()
			wantCode(t, <-done, codes.Aborted)
		})
	}
}

func TestTwoClassesWithDifferentSecretsDoNotMix(t *testing.T) {
	r := newRig(t)
	first := r.mustCreate(machine("m1"))
	other, err := r.cloud.NewServiceAccountKey(iaasmock.SecondProjectID)
	if err != nil {
		t.Fatal(err)
	}
	r.class.Name = "class-b"
	r.setSpec(func(spec map[string]any) {
		spec["networking"] = map[string]any{"networkId": iaasmock.SecondProjectNetworkID}
	})
	r.secret.Data["projectId"] = []byte(iaasmock.SecondProjectID)
	r.secret.Data["serviceAccountKey"] = other
	second := r.mustCreate(machine("m1"))
	if len(r.cloud.Servers()) != 2 {
		t.Fatalf("servers: %+v", r.cloud.Servers())
	}
	wantCode(t, r.delete(withID(r.deleted(machine("m1")), first.ProviderID)), codes.InvalidArgument)
	if err := r.delete(withID(r.deleted(machine("m1")), second.ProviderID)); err != nil {
		t.Fatal(err)
	}
	if left := r.onlyServer(); left.ProjectID != iaasmock.DefaultProjectID {
		t.Errorf("the server in %s is left", left.ProjectID)
	}
}

func TestARotatedKeyIsUsedAtOnce(t *testing.T) {
	r := newRig(t)
	created := r.mustCreate(machine("m1"))
	rotated, err := r.cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cloud.RevokeServiceAccountKey(r.key); err != nil {
		t.Fatal(err)
	}
	_, err = r.status(withID(machine("m1"), created.ProviderID))
	wantCode(t, err, codes.Unauthenticated)
	r.secret.Data["serviceAccountKey"] = rotated
	again := r.mustCreate(machine("m1"))
	if again.ProviderID != created.ProviderID {
		t.Errorf("the machine got another server: %s", again.ProviderID)
	}
	if err := r.delete(withID(r.deleted(machine("m1")), created.ProviderID)); err != nil {
		t.Fatal(err)
	}
	r.wantNothingLeft()
}

// The manager comes back in seconds, with the Secret as it is then.
func TestAKeyRevokedDuringAWaitEndsItAtOnce(t *testing.T) {
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
	done := make(chan error)
	go func() {
		_, err := r.create(machine("m1"))
		done <- err
	}()
	r.eventually(func() bool { return r.cloud.CallCounts()["GetServer"] > 0 })
	if err := r.cloud.RevokeServiceAccountKey(r.key); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-done, codes.Unavailable)
	r.onlyServer()
}
