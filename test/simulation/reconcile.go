// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
)

// The manager's retry periods.
const (
	shortRetry  = time.Duration(machineutils.ShortRetry)
	mediumRetry = time.Duration(machineutils.MediumRetry)
	longRetry   = time.Duration(machineutils.LongRetry)
)

// reconcile is one pass of the manager over a Machine, as its machine.go and
// machine_util.go (v0.62.1) have it. A Node is nothing but whether its server runs.
type reconcile struct {
	*cluster
	process *process
	record  *record
	// machine is what the cache shows, maybe an older version.
	machine *v1alpha1.Machine
	class   *v1alpha1.MachineClass
	secret  *corev1.Secret
	// answerFault is what befalls the last driver answer and the write after it.
	answerFault answerFault
}

// creationTimeout is the manager's default, healthTimeout that of the Gardener
// extensions.
const (
	creationTimeout = 20 * time.Minute
	healthTimeout   = 10 * time.Minute
)

// labeled says that the Machine has its node label. It is written together with the
// ProviderID, in updateLabels.
func (r *reconcile) labeled() bool { return r.machine.Spec.ProviderID != "" }

// tooLate is the part of getCreateFailurePhase that decides.
func (r *reconcile) tooLate() bool {
	timeout := creationTimeout
	if own := r.machine.Spec.MachineConfiguration; own != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	return r.process.clock.Since(r.machine.CreationTimestamp.Time) > timeout
}

func (r *reconcile) nodeReady() bool { return r.world.nodeReady(r.machine) }

func (r *reconcile) setPhase(phase v1alpha1.MachinePhase) {
	if r.machine.Status.CurrentStatus.Phase == phase {
		return
	}
	_, ok := r.update(func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.Phase = phase
		m.Status.CurrentStatus.LastUpdateTime.Time = r.process.clock.Now()
	})
	if ok {
		r.world.log("%s %s is %s", r.process.name, r.machine.Name, phase)
	}
}

// update writes to the API server, unless the fault of its answer is a conflict.
func (r *reconcile) update(change func(*v1alpha1.Machine)) (*v1alpha1.Machine, bool) {
	if r.process.dead() {
		return nil, false
	}
	befalls := r.answerFault
	r.answerFault = answerFault{}
	var updated *v1alpha1.Machine
	ok := false
	if !befalls.conflict {
		if updated, ok = r.api.update(r.record, r.machine, change); ok {
			r.machine = updated
		}
	}
	if !ok {
		r.world.log("%s %s: a write fails", r.process.name, r.machine.Name)
	}
	if befalls.crashAfter {
		r.crash(r.process, "after a write to "+r.machine.Name)
	}
	return updated, ok
}

// drive makes a driver call as the manager does, and reads its error as it does.
// alive is false if the process did not live to see the answer.
func drive[Request, Response any](r *reconcile, method string,
	f func(context.Context, *Request) (*Response, error), request *Request) (response *Response, code codes.Code, alive bool) {
	name := r.machine.Name
	r.world.log("%s %s %s begins", r.process.name, name, method)
	response, err := f(calledBy(r.process.ctx, name+" "+method), request)
	if !r.process.awake() {
		return nil, codes.Unknown, false
	}
	code = r.process.decode(method, name, err)
	r.restoreLabels(err)
	if isCreationTimedOut(err) && !r.tooLate() {
		r.world.violated("%s of %s: the creation timeout is not over: %v", method, name, err)
	}
	if (code == codes.OK || code == codes.Uninitialized) && response == nil {
		r.world.violated("%s of %s answers %s without a response", method, name, code)
		response = new(Response)
	}
	r.answerFault = r.world.injector.answer(r.world.describeAnswer(r.name, name, method))
	if r.answerFault.crashBefore {
		r.crash(r.process, "before the answer of "+method+" of "+name)
		return nil, code, false
	}
	return response, code, true
}

// decode returns the code of an error as the manager does.
func (p *process) decode(method, machine string, err error) codes.Code {
	w := p.world
	if err == nil {
		w.log("%s %s %s ends", p.name, machine, method)
		return codes.OK
	}
	w.log("%s %s %s: %v", p.name, machine, method, err)
	decoded, ok := status.FromError(err)
	if !ok {
		w.violated("the manager cannot decode the error of %s: %v", method, err)
		return codes.Unknown
	}
	w.checkCode(method, decoded.Code(), err)
	return decoded.Code()
}
