// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A call that ended earlier would show the user CrashLoopBackOff for a server that is fine.
func TestOneCreateMachineWaitsForASlowBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, iaasmock.WithBootDuration(8*time.Minute))
		if response := r.mustCreate(machine("m1")); response.ProviderID != providerIDOf(r.onlyServer().ID) {
			t.Errorf("the ProviderID is %s", response.ProviderID)
		}
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
			wantDeadline(t, r, row.want, func() error { _, err := r.create(m); return err })
		})
	}
}

func TestOtherDeadlinesOfACreation(t *testing.T) {
	for name, row := range map[string]struct {
		call func(r *rig, serverID string) error
		want time.Duration
	}{
		"CreateMachine of a Machine without a creationTimestamp": {func(r *rig, _ string) error {
			_, err := r.create(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
			return err
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
