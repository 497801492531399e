// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
)

// creation is triggerCreationFlow.
func (r *reconcile) creation() time.Duration {
	uninitialized := false
	var providerID string
	found, code, alive := drive(r, "GetMachineStatus", r.process.driver.GetMachineStatus,
		&driver.GetMachineStatusRequest{Machine: r.machine, MachineClass: r.class, Secret: r.secret})
	switch {
	case !alive:
		return 0
	case code == codes.OK:
		providerID = found.ProviderID
	case code == codes.Uninitialized:
		uninitialized, providerID = true, found.ProviderID // the manager dereferences it, too
	case code != codes.NotFound:
		return r.creationFailed(code)
	case r.machine.Spec.ProviderID != "":
		providerID = r.machine.Spec.ProviderID
	default:
		created, code, alive := drive(r, "CreateMachine", r.process.driver.CreateMachine,
			&driver.CreateMachineRequest{Machine: r.machine, MachineClass: r.class, Secret: r.secret})
		if !alive {
			return 0
		}
		if code != codes.OK {
			return r.creationFailed(code)
		}
		uninitialized, providerID = true, created.ProviderID
	}
	return r.settleIn(uninitialized, providerID)
}

// settleIn writes the ProviderID, initializes the server, and sets the phase.
func (r *reconcile) settleIn(uninitialized bool, providerID string) time.Duration {
	machine := r.machine
	written := machine.Spec.ProviderID != ""
	if !written {
		updated, ok := r.update(func(m *v1alpha1.Machine) { m.Spec.ProviderID = providerID })
		if r.process.dead() {
			return 0
		}
		if ok {
			machine = updated
		}
	}
	if uninitialized {
		_, code, alive := drive(r, "InitializeMachine", r.process.driver.InitializeMachine,
			&driver.InitializeMachineRequest{Machine: machine, MachineClass: r.class, Secret: r.secret})
		if alive && code != codes.OK {
			r.creationFailed(code)
		}
		return shortRetry
	}
	if !written { // in both cases the manager ends the pass with an error
		return shortRetry
	}
	r.setPhase(v1alpha1.MachinePending)
	return shortRetry
}

// creationFailed is machineCreateErrorHandler.
func (r *reconcile) creationFailed(code codes.Code) time.Duration {
	phase := v1alpha1.MachineCrashLoopBackOff
	if r.tooLate() {
		phase = v1alpha1.MachineFailed
	}
	r.setPhase(phase)
	switch code {
	case codes.ResourceExhausted:
		return longRetry
	case codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
		return shortRetry
	default:
		return mediumRetry
	}
}
