// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
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

// tend lets the process reconcile a Machine until it is gone, or the process.
func (p *process) tend(r *record) {
	p.mu.Lock()
	known := p.tended[r]
	p.tended[r] = true
	p.mu.Unlock()
	if !known {
		p.cluster.world.spawn(func() { p.reconcile(r) })
	}
}

// reconcile makes one pass after another.
func (p *process) reconcile(r *record) {
	c := p.cluster
	first, _ := c.api.latestOf(r)
	rng := random(c.world.plan.Seed, "tend", p.name, first.UID)
	seen := c.api.observe(r)
	for gap, count := between(rng, 0, time.Second), 0; p.wait(gap, seen.woken); count++ {
		machine, exists := c.api.cached(seen, c.world.injector.stale(p.name, first.Name, count), p.remembers())
		if !exists {
			return
		}
		retry := time.Second
		if machine != nil {
			pass := &reconcile{cluster: c, process: p, record: r, machine: machine}
			pass.class, pass.secret = c.inputs(machine.Spec.Class.Name)
			retry = p.inTurn(first.Name, pass.run)
			if latest, _ := c.api.latestOf(r); latest.ResourceVersion != machine.ResourceVersion {
				retry = min(retry, 2*time.Second) // the cache will show it
			}
		}
		gap = untilNext(rng, retry)
	}
}

// untilNext is any time up to the retry period: events of other objects re-queue a
// Machine whenever they like.
func untilNext(rng *rand.Rand, retry time.Duration) time.Duration {
	if rng.IntN(3) == 0 {
		return between(rng, 0, min(retry, time.Second))
	}
	return between(rng, 0, retry)
}

func (r *reconcile) run() time.Duration {
	phase := r.machine.Status.CurrentStatus.Phase
	switch {
	case r.machine.DeletionTimestamp != nil:
		return r.deletion()
	case r.labeled() && phase != "" && r.health():
		return shortRetry
	case !r.labeled() || phase == "" || phase == v1alpha1.MachineCrashLoopBackOff:
		return r.creation()
	case phase == v1alpha1.MachinePending || phase == v1alpha1.MachineUnknown:
		return shortRetry // an event of its Node ends that
	}
	return longRetry
}

// labeled says that the Machine has its node label. It is written together with the
// ProviderID, in updateLabels.
func (r *reconcile) labeled() bool { return r.machine.Spec.ProviderID != "" }

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

// creationTimeout is the manager's default, healthTimeout that of the Gardener
// extensions.
const (
	creationTimeout = 20 * time.Minute
	healthTimeout   = 10 * time.Minute
)

// tooLate is the part of getCreateFailurePhase that decides.
func (r *reconcile) tooLate() bool {
	timeout := creationTimeout
	if own := r.machine.Spec.MachineConfiguration; own != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	return r.process.clock.Since(r.machine.CreationTimestamp.Time) > timeout
}

// health is reconcileMachineHealth: what a Node brings about. It says whether that
// was the whole pass. Whatever the phase is, a Ready Node makes the Machine Running:
// a creation that has not come to its end is never gone on with then.
func (r *reconcile) health() bool {
	status := r.machine.Status.CurrentStatus
	switch ready := r.nodeReady(); {
	case ready && status.Phase != v1alpha1.MachineRunning:
		r.setPhase(v1alpha1.MachineRunning)
	case !ready && status.Phase == v1alpha1.MachineRunning:
		r.setPhase(v1alpha1.MachineUnknown)
	case status.Phase == v1alpha1.MachinePending && r.tooLate(),
		status.Phase == v1alpha1.MachineUnknown && r.process.clock.Since(status.LastUpdateTime.Time) > healthTimeout:
		r.setPhase(v1alpha1.MachineFailed)
	default:
		return false
	}
	return true
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
		r.process.crash("after a write to " + r.machine.Name)
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
	code = r.process.judge(method, name, err)
	if (code == codes.OK || code == codes.Uninitialized) && response == nil {
		r.world.violated("%s of %s answers %s without a response", method, name, code)
		response = new(Response)
	}
	r.answerFault = r.world.injector.answer(r.world.describeAnswer(r.name, name, method))
	if r.answerFault.crashBefore {
		r.process.crash("before the answer of " + method + " of " + name)
		return nil, code, false
	}
	return response, code, true
}

// judge decodes an error as the manager does.
func (p *process) judge(method, machine string, err error) codes.Code {
	w := p.cluster.world
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

func (w *world) describeAnswer(cluster, machine, method string) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	key := "answer" + cluster + machine + method
	repeat := w.repeats[key]
	w.repeats[key]++
	return answer{w.answers, cluster, machine, method, repeat}
}
