// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
)

// Stages of a deletion; the manager keeps them in the last operation's
// description.
const (
	stageStatus    = machineutils.GetVMStatus
	stageVM        = machineutils.InitiateVMDeletion
	stageFinalizer = machineutils.InitiateFinalizerRemoval
)

// deletion is triggerDeletionFlow.
func (r *reconcile) deletion() time.Duration {
	switch stage := r.machine.Status.LastOperation.Description; stage {
	case stageStatus:
		return r.deletionStatus()
	case stageVM:
		return r.deleteVM()
	case stageFinalizer:
		if r.api.finalize(r.record, r.machine) {
			r.world.log("%s %s is gone", r.process.name, r.machine.Name)
			r.world.checkGone(owner{r.name, r.machine.Name})
			r.collectSoon()
		}
		return shortRetry
	default:
		r.update(func(m *v1alpha1.Machine) {
			m.Status.LastOperation.Description = stageStatus
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
		})
		return shortRetry
	}
}

func (r *reconcile) deletionStatus() time.Duration {
	_, code, alive := drive(r, "GetMachineStatus", r.process.driver.GetMachineStatus,
		&driver.GetMachineStatusRequest{Machine: r.machine, MachineClass: r.class, Secret: r.secret})
	if !alive {
		return 0
	}
	switch code {
	case codes.OK, codes.NotFound, codes.Uninitialized, codes.Unimplemented:
		r.update(func(m *v1alpha1.Machine) { m.Status.LastOperation.Description = stageVM })
		return shortRetry
	case codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
		return shortRetry
	default:
		return mediumRetry
	}
}

func (r *reconcile) deleteVM() time.Duration {
	_, code, alive := drive(r, "DeleteMachine", r.process.driver.DeleteMachine,
		&driver.DeleteMachineRequest{Machine: r.machine, MachineClass: r.class, Secret: r.secret})
	if !alive {
		return 0
	}
	switch code {
	case codes.OK, codes.NotFound:
		r.update(func(m *v1alpha1.Machine) { m.Status.LastOperation.Description = stageFinalizer })
		return shortRetry
	case codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
		return shortRetry
	default:
		return longRetry
	}
}
