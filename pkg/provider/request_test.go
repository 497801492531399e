// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCreateMachineFillsInFromTheSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { delete(spec, "networking") })
		r.secret.Data["region"] = []byte(iaasmock.DefaultAvailabilityZone)
		r.secret.Data["networkId"] = []byte(iaasmock.DefaultNetworkID)
		r.mustCreate(machine("m1"))
		server := r.onlyServer()
		if server.NetworkID != iaasmock.DefaultNetworkID || server.AvailabilityZone != iaasmock.DefaultAvailabilityZone ||
			string(server.UserData) != "#cloud-config from the Secret" {
			t.Errorf("network %q, zone %q, userData %q: want the Secret's", server.NetworkID, server.AvailabilityZone, server.UserData)
		}
	})
}

func TestDeleteMachineWithoutARegionSaysWhatToSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		delete(r.secret.Data, "region")
		err := r.remove(machine("m1"))
		wantCode(t, err, codes.InvalidArgument)
		if !strings.Contains(err.Error(), "providerSpec.region") || !strings.Contains(err.Error(), "Secret") {
			t.Errorf("%q does not say where to set the region", err)
		}
	})
}

// A name that cannot be a label: no server can carry it, and the Machine must go.
func TestMachineWithANameThatIsTooLongSaysSoAndCanBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine(strings.Repeat("m", 64))
		wantCode(t, r.statusErr(m), codes.NotFound)
		_, err := r.create(m)
		wantCode(t, err, codes.InvalidArgument)
		wantSaid(t, err.Error(), "machine.metadata.name")
		// Nor is there a reason to wait for what a predecessor may have asked for.
		m.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
		r.restart(provider.WithActingSince(time.Now))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := r.driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: r.deleted(m), MachineClass: r.class, Secret: r.secret}); err != nil {
			t.Error(err)
		}
		r.wantNoCalls()
	})
}

func TestDeleteMachineWithAWrongDefaultNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		response := r.mustCreate(machine("m1"))
		r.secret.Data["networkId"] = []byte("my-network")
		r.mustDelete(withID(r.deleted(machine("m1")), response.ProviderID))
		r.wantNothingLeft()
	})
}

func TestWrongInputsNameEveryField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		for _, err := range []error{r.statusErr(machine("m1")), r.createErr(machine("m1"))} {
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "providerSpec.region", "providerSpec.machineType", "providerSpec.imageId",
				"providerSpec.networking", "providerSpec.bootVolume.size", "secret.projectId", "secret.serviceAccountKey")
		}
		r.wantNoCalls()
	})
}

// Of wrong types the first is named, beside all that is wrong with what was decoded.
func TestAWrongTypeIsNamedWithItsPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) {
			spec["networking"] = map[string]any{"nicIds": []any{"s3cr3t"}}
			spec["userData"] = 81726354
		})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.InvalidArgument)
		for _, want := range []string{"providerSpec.userData: Invalid value: is a JSON number, must be a string", "providerSpec.networking.nicIds(0)"} {
			if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "81726354") {
				t.Errorf("got %q, want %q and no value", err, want)
			}
		}
	})
}

func TestUserDataIsNotTooLong(t *testing.T) {
	const says = "providerSpec.userData: Invalid value: has 262145 bytes, here or in the Secret, must have at most 262144"
	for name, row := range map[string]struct {
		bytes int
		want  codes.Code
	}{"the longest": {256 << 10, codes.OK}, "longer": {256<<10 + 1, codes.InvalidArgument}} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.secret.Data["userData"] = bytes.Repeat([]byte("s"), row.bytes)
			_, err := r.create(machine("m1"))
			wantCode(t, err, row.want)
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("got %q", err)
			}
		})
	}
}

// The class, or the Secret, was edited after the server was made.
func TestAnEditedClassLosesNoServer(t *testing.T) {
	for name, row := range map[string]struct {
		edit      func(r *rig, spec map[string]any)
		restarted bool
		byID      bool
		want      codes.Code
	}{
		"another region": {func(_ *rig, spec map[string]any) {
			spec["region"] = "eu02"
		}, false, true, codes.FailedPrecondition},
		// In the Secret's region the server would count as gone.
		"a region of a wrong type": {func(r *rig, spec map[string]any) {
			r.secret.Data["region"] = []byte("eu02")
			spec["machineType"], spec["region"] = 5, 7
		}, true, true, codes.InvalidArgument},
		// One wrong type hides no other: where a field cannot be read by which servers are found, nothing is
		// concluded from it.
		"a cluster of a wrong type, too": {func(_ *rig, spec map[string]any) {
			spec["machineType"], spec["labels"] = 5, map[string]any{clusterLabel: 1}
		}, true, false, codes.FailedPrecondition},
		// The class says "no cluster", the server says "shoot-a".
		"no cluster": {func(_ *rig, spec map[string]any) { delete(spec, "labels") }, true, true, codes.FailedPrecondition},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			if response := r.mustCreate(m); row.byID {
				m = withID(m, response.ProviderID)
			}
			if row.restarted {
				r.restartNow()
			}
			r.setSpec(func(spec map[string]any) { row.edit(r, spec) })
			wantCode(t, r.remove(m), row.want)
			if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
				t.Errorf("the server is %s", left.Status)
			}
			r.makeInputs()
			r.mustRemove(m)
			r.wantNothingLeft()
		})
	}
}

func TestMissingInputs(t *testing.T) {
	for name, call := range map[string]func(context.Context, *rig) error{
		"CreateMachine(nil)":     func(ctx context.Context, r *rig) error { _, err := r.driver.CreateMachine(ctx, nil); return err },
		"InitializeMachine(nil)": func(ctx context.Context, r *rig) error { _, err := r.driver.InitializeMachine(ctx, nil); return err },
		"GetMachineStatus(nil)":  func(ctx context.Context, r *rig) error { _, err := r.driver.GetMachineStatus(ctx, nil); return err },
		"DeleteMachine(nil)":     func(ctx context.Context, r *rig) error { _, err := r.driver.DeleteMachine(ctx, nil); return err },
		"ListMachines(nil)":      func(ctx context.Context, r *rig) error { _, err := r.driver.ListMachines(ctx, nil); return err },
		"no class":               func(_ context.Context, r *rig) error { r.class = nil; _, err := r.create(machine("m1")); return err },
		"no Secret":              func(_ context.Context, r *rig) error { r.secret = nil; _, err := r.create(machine("m1")); return err },
		"empty Secret": func(_ context.Context, r *rig) error {
			r.secret = &corev1.Secret{}
			_, err := r.create(machine("m1"))
			return err
		},
		"no name":       func(_ context.Context, r *rig) error { return r.createErr(machine("")) },
		"too long name": func(_ context.Context, r *rig) error { return r.createErr(machine(strings.Repeat("m", 64))) },
	} {
		bubble(t, name, func(t *testing.T) { wantCode(t, call(t.Context(), newRig(t)), codes.InvalidArgument) })
	}
}

func TestAnotherProvidersClassIsRefused(t *testing.T) {
	for name, call := range everyCall {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.class.Provider = "openstack"
			err := call(r)
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "openstack")
			r.wantNoCalls()
		})
	}
}

func TestStrictModeRefusesUnknownFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		created := r.mustCreate(machine("m1"))
		r.restart(provider.WithStrictProviderSpec(true))
		r.setSpec(func(spec map[string]any) { spec["machinType"] = "c2i.2" })
		r.cloud.ResetCalls()
		m := withID(machine("m1"), created.ProviderID)
		for _, err := range []error{r.createErr(machine("m2")), r.initErr(m)} {
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "machinType")
		}
		r.wantNoCalls()
		// What is there already can still be found and deleted.
		wantCode(t, r.statusErr(m), codes.OK)
		r.mustRemove(m)
	})
}

func TestDeadlineOfACreation(t *testing.T) {
	flags := provider.WithCreationTimeout
	own := func(timeout time.Duration) *v1alpha1.MachineConfiguration {
		return &v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: timeout}}
	}
	for name, row := range map[string]struct {
		flags         provider.Option
		configuration *v1alpha1.MachineConfiguration
		age           time.Duration
		want          time.Duration
	}{
		"a young Machine":                     {want: 10 * time.Minute},
		"8 of 20 minutes are left":            {age: 12 * time.Minute, want: 8 * time.Minute},
		"seconds are left":                    {age: 19*time.Minute + 50*time.Second, want: time.Minute},
		"nothing is left, without a target":   {flags: provider.WithTargetCluster(false), age: time.Hour, want: time.Minute},
		"made in the future, by its clock":    {age: -time.Hour, want: 10 * time.Minute},
		"a shorter timeout":                   {flags: flags(5*time.Minute, 10*time.Minute), want: 5 * time.Minute},
		"a shorter wait":                      {flags: flags(20*time.Minute, 2*time.Minute), want: 2 * time.Minute},
		"a longer wait than the timeout":      {flags: flags(20*time.Minute, time.Hour), age: 5 * time.Minute, want: 15 * time.Minute},
		"a shorter timeout of the Machine":    {configuration: own(3 * time.Minute), want: 3 * time.Minute},
		"a longer timeout of the Machine":     {flags: flags(2*time.Minute, 10*time.Minute), configuration: own(time.Hour), want: 10 * time.Minute},
		"a configuration that has no timeout": {configuration: &v1alpha1.MachineConfiguration{}, want: 10 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.flags != nil {
				r.restart(row.flags)
			}
			m := machine("m1")
			m.CreationTimestamp = metav1.NewTime(time.Now().Add(-row.age))
			m.Spec.MachineConfiguration = row.configuration
			wantDeadline(t, r, row.want, func() error { return r.createErr(m) })
		})
	}
}

func TestOtherDeadlinesOfACreation(t *testing.T) {
	for name, row := range map[string]struct {
		call func(r *rig, serverID string) error
		want time.Duration
	}{
		"CreateMachine of a Machine without a creationTimestamp": {func(r *rig, _ string) error {
			return r.createErr(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
		}, 10 * time.Minute},
		"InitializeMachine": {func(r *rig, serverID string) error {
			m := withID(machine("m1"), providerIDOf(serverID))
			m.CreationTimestamp = metav1.NewTime(time.Now().Add(-13 * time.Minute))
			_, err := r.initialize(m)
			return err
		}, 7 * time.Minute},
		"WaitUntilServerRunning": {func(r *rig, serverID string) error {
			return r.provider().WaitUntilServerRunning(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, serverID)
		}, 10 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithBootDuration(24*time.Hour))
			id := r.makeServer("m1", nil)
			r.list() // opens the session that WaitUntilServerRunning uses
			wantDeadline(t, r, row.want, func() error { return row.call(r, id) })
		})
	}
}

// wantDeadline checks how long a call waits for a server that never boots.
func wantDeadline(t *testing.T, r *rig, want time.Duration, call func() error) {
	t.Helper()
	r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
	began := time.Now()
	err := call()
	if took := time.Since(began).Round(time.Second); took != want {
		t.Errorf("it waited for %s, want %s", took, want)
	}
	wantCode(t, err, codes.DeadlineExceeded)
}
