// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// A short lease, so that another replica takes over after seconds.
	leaseDuration = 6 * time.Second
	renewDeadline = 3 * time.Second
	renewPeriod   = time.Second

	// restartDelay is between the end of a replica and its next start. One that led
	// must not lead again before another has: that one sees the last renewal after up
	// to 2.2 renewPeriods, waits for leaseDuration, and tries after up to 2.2 more.
	restartDelay = 5 * time.Second
)

// generationMark stands between a replica's part and the number of its start.
const generationMark = "."

// ReplicaPart names a machine-controller of WithSidecarReplicas, for Logs; the first
// is 1.
func ReplicaPart(number int) Part { return Part(fmt.Sprintf("%s-%d", PartSidecar, number)) }

// startReplicas starts all of WithSidecarReplicas, and keeps them running as
// Kubernetes does: one that ends is started again, with a new name. A
// machine-controller that loses its lease, because the API server did not answer or
// because it was slow, ends itself.
func (e *Env) startReplicas(ctx context.Context) error {
	running, cancel := context.WithCancel(context.Background())
	e.stopReplicas = cancel
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		lease, err := e.newLeaseIdentity(ReplicaPart(number), e.control.credentials.token)
		if err != nil {
			return &PartError{Part: ReplicaPart(number), Err: err}
		}
		ended := make(chan struct{}, 1)
		if err := e.startReplica(ctx, number, 1, lease, ended); err != nil {
			return err
		}
		e.watchers.Add(1)
		go func() {
			defer e.watchers.Done()
			e.keepReplica(running, number, lease, ended)
		}()
	}
	return nil
}

// keepReplica starts a replica whenever it has ended, until ctx ends.
func (e *Env) keepReplica(ctx context.Context, number int, lease *leaseIdentity, ended chan struct{}) {
	for generation := 2; ; generation++ {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
		if err := e.startReplica(ctx, number, generation, lease, ended); err != nil {
			e.progress("%s: %v", ReplicaPart(number), err)
			ended <- struct{}{}
		}
	}
}

// startReplica starts a replica. Like the Pods of a Deployment, one that comes back is
// another one, and has to wait until its own lease has ended.
func (e *Env) startReplica(ctx context.Context, number, generation int, lease *leaseIdentity, ended chan struct{}) error {
	lease.become(fmt.Sprintf("%s%s%d", ReplicaPart(number), generationMark, generation))
	args := append(append(e.controllerArgs(), e.sidecarArgs()...),
		"--control-kubeconfig="+lease.kubeconfig,
		"--leader-elect=true",
		"--leader-elect-lease-duration="+leaseDuration.String(),
		"--leader-elect-renew-deadline="+renewDeadline.String(),
		"--leader-elect-retry-period="+renewPeriod.String(),
	)
	part := ReplicaPart(number)
	s := e.controllerService(part, e.programs.sidecar, e.sidecarEnvironment(), args)
	s.ended = func(*process) {
		e.endPart(part, 0)
		ended <- struct{}{}
	}
	_, err := e.launchController(ctx, s)
	return err
}

// KillReplica ends a machine-controller of WithSidecarReplicas with SIGKILL and
// returns when it is gone. It is started again after some seconds; if it was the
// leader, another one leads first.
func (e *Env) KillReplica(number int) {
	e.mu.Lock()
	p := e.processes[ReplicaPart(number)]
	e.mu.Unlock()
	if p != nil {
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
}

// PauseReplica stops a machine-controller of WithSidecarReplicas with SIGSTOP, in the
// middle of whatever it does. The function it returns lets it go on; if another one
// leads by then, it finds that out with its next renewal and ends itself. There is
// none if the replica has ended and was not started again yet.
func (e *Env) PauseReplica(number int) (resume func(), ok bool) {
	e.mu.Lock()
	p := e.processes[ReplicaPart(number)]
	e.mu.Unlock()
	if p == nil {
		return nil, false
	}
	p.signal(syscall.SIGSTOP)
	return func() { p.signal(syscall.SIGCONT) }, true
}

// Leader returns the number of the replica that the lease names, even if that has ended;
// 0 if there is no lease.
func (e *Env) Leader(ctx context.Context) (int, error) {
	var lease coordinationv1.Lease
	err := e.control.client.Get(ctx, client.ObjectKey{Namespace: e.settings.namespace, Name: string(PartSidecar)}, &lease)
	if err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		if strings.HasPrefix(holder, string(ReplicaPart(number))+generationMark) {
			return number, nil
		}
	}
	return 0, nil
}

// endReplicas ends all of WithSidecarReplicas.
func (e *Env) endReplicas() {
	if e.stopReplicas != nil {
		e.stopReplicas()
	}
	for number := 1; number <= e.settings.sidecarReplicas; number++ {
		e.endPart(ReplicaPart(number), stopGrace)
	}
}
