// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

const (
	// DefaultCreationWait is the longest deadline of CreateMachine and InitializeMachine. A
	// slow cloud boots for longer than 5 minutes; a Machine that is deleted meanwhile waits
	// for the call's end (the manager's v0.62.1 machine.go:638).
	DefaultCreationWait = 10 * time.Minute
	// MinCreationWait is the shortest: a call with less time could not even wait settle for
	// what a lost request made.
	MinCreationWait = time.Minute
	// defaultCreationTimeout is that of the manager's flag --machine-creation-timeout.
	defaultCreationTimeout = 20 * time.Minute

	// deleteTimeout is the deadline of DeleteMachine; callTimeout in readers.go that of calls
	// that wait for nothing.
	deleteTimeout = 10 * time.Minute
)

// creationTimes decide how long a creation may wait.
type creationTimes struct {
	// timeout is the age at which the manager gives a Machine up that names none itself.
	timeout time.Duration
	// wait is the longest deadline of a call.
	wait time.Duration
}

// expires returns when the Machine is older than its creation timeout; the zero time if nobody knows
// its age.
func (t creationTimes) expires(machine *v1alpha1.Machine) time.Time {
	if machine == nil || machine.CreationTimestamp.IsZero() {
		return time.Time{}
	}
	timeout := t.timeout
	if own := machine.Spec.MachineConfiguration; own != nil && own.MachineCreationTimeout != nil {
		timeout = own.MachineCreationTimeout.Duration
	}
	return machine.CreationTimestamp.Add(timeout)
}

// deadline returns how long a call may wait for the Machine's server. A call that ends
// while the server boots shows the user CrashLoopBackOff for a server that is fine; one that
// lasts longer than the Machine may wait keeps the manager from giving the Machine up.
func (t creationTimes) deadline(machine *v1alpha1.Machine, now time.Time) time.Duration {
	expires := t.expires(machine)
	if expires.IsZero() {
		return t.wait
	}
	return max(MinCreationWait, min(expires.Sub(now), t.wait))
}
