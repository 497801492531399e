// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// call is a driver call with its decoded and checked request.
type call struct {
	identity
	*readers
	// ref identifies the Machine's record, and the place of its servers.
	ref machineRef
	// serverID is the server in the request's ProviderID, givenID; "" without one.
	serverID, givenID string
	// spec has its defaults set. A lenient call has few of its fields. specHash is the providerSpec's
	// in a strict call.
	spec     *apis.ProviderSpec
	specHash specHash
	// networkErrors are the errors because of which the spec's networking cannot be read.
	networkErrors field.ErrorList
	// isDeleted reports whether the Machine has a deletionTimestamp.
	isDeleted bool
	// isYoung reports whether the memory has every action for the machine: the machine is younger
	// than this process's leadership and than recordLifetime.
	isYoung bool
	// certainOfPredecessor is the earliest start of a look-up that sees every POST of a predecessor;
	// the zero time if none has worked on the machine.
	certainOfPredecessor time.Time
	// expires is when the Machine's MachineSet replaces it if it has no Node; the zero time if no
	// MachineSet does.
	expires time.Time

	// began, hasWorked, placeSeen and failed are for waits (wait.go): when the call began, whether one
	// of its reads or writes succeeded, whether a read has shown its project and region, and the last
	// failed API call. They are atomic because servers are deleted in parallel.
	began                time.Time
	hasWorked, placeSeen atomic.Bool
	failed               atomic.Pointer[APIError]
}

// strictness is how a request is decoded.
type strictness bool

const (
	// strict requires a valid spec, because the call will use it.
	strict strictness = true
	// lenient requires project, region and identity only, and decodes little more: a machine whose
	// class was broken after its creation must still be found and deleted.
	lenient strictness = false
)

// newMachineCall decodes and checks the request of a call about a machine.
func (p *Provider) newMachineCall(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness,
) (*call, error) {
	if machine == nil {
		return nil, newError(ReasonInvalidInput, "the request has no Machine")
	}
	if machine.Name == "" {
		return nil, newError(ReasonInvalidInput, "the request's Machine has no name")
	}
	p.process.memory.meet(refTo(machine))
	c, err := p.newCall(machine, class, secret, mode)
	if err != nil {
		return nil, err
	}
	if machine.Spec.ProviderID == "" {
		return c, c.checkElsewhere()
	}
	c.givenID = machine.Spec.ProviderID
	if c.serverID, err = providerid.Parse(machine.Spec.ProviderID, c.ref.project); err != nil {
		return nil, newError(ReasonInvalidProviderID, "machine %s: %v", machine.Name, err)
	}
	return c, c.checkElsewhere()
}

// refTo returns the reference to a Machine's record, without a place.
func refTo(machine *v1alpha1.Machine) *machineRef {
	return &machineRef{
		machineKey: machineKey{machine.Namespace, machine.Name}, uid: string(machine.UID),
		created: machine.CreationTimestamp.Time,
	}
}

// newCall decodes and checks a request, and opens the session. machine is nil for a call about a
// class. All problems are reported at once, with the paths of the fields.
func (p *Provider) newCall(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness,
) (*call, error) {
	if class == nil {
		return nil, newError(ReasonInvalidInput, "the request has no MachineClass")
	}
	if secret == nil {
		return nil, newError(ReasonInvalidInput, "the request has no Secret")
	}
	in := p.inputs(machine, class, secret, mode)
	session, sessionErr := p.SPI.Session(Credentials(in.Secret))
	err := in.problems(sessionErr)
	if err != nil && mode == lenient {
		err = cmp.Or(p.inputs(machine, class, secret, strict).problems(sessionErr), err)
	}
	if err != nil {
		return nil, err
	}
	p.sessions.Set(session.ProjectID, session)
	p.warn(in)
	c := p.newSessionCall(session, in.Spec.Region)
	c.identity, c.spec, c.specHash, c.networkErrors = in.identity, in.Spec, in.specHash, in.network
	p.meters.nameClass(c.class, session.KeyExpiry)
	if machine != nil {
		place := c.ref.place
		c.ref = *refTo(machine)
		c.ref.place = place
		c.isDeleted = machine.DeletionTimestamp != nil
		c.certainOfPredecessor, c.isYoung = p.predecessors(machine.CreationTimestamp.Time)
		if !p.withoutTarget && metav1.GetControllerOf(machine) != nil { // others are not replaced
			c.expires = p.creation.expires(machine)
		}
	}
	return c, nil
}

// newSessionCall returns a call that has only a session and a region.
func (p *Provider) newSessionCall(session *spi.Session, region string) *call {
	return &call{
		began: p.clock.Now(), readers: p.readersOf(session, region), identity: identity{unlabelable: true},
		ref: machineRef{place: place{session.Endpoint, session.ProjectID, region}},
	}
}

// serverRequest returns the request for the machine's server, of one of the spec's choices.
func (c *call) serverRequest(of apis.Choice) *ServerRequest {
	spec := *c.spec
	spec.MachineType, spec.AvailabilityZone = of.MachineType, of.AvailabilityZone
	return &ServerRequest{Name: c.machine, Labels: c.serverLabels(c.spec.Labels), Spec: &spec}
}

// warn logs a class's suspicious but valid settings, each at most once an hour.
func (p *Provider) warn(in *inputs) {
	class := in.identity.class
	if problems := sanitize(in.unknownText()); problems != "" && p.noteWarning("fields "+class+problems) {
		klog.InfoS("MachineClass has unknown or duplicate fields in its providerSpec",
			"machineClass", loggable(class), "problems", problems)
	}
	if len(in.identity.cluster) == 0 && p.noteWarning("cluster "+class) {
		klog.InfoS("MachineClass has no cluster label (a key in providerSpec.labels that ends in /cluster): "+
			"its servers are distinguished from other clusters' only by the names of Machine and class",
			"machineClass", loggable(class))
	}
}

// certain returns the earliest start of a look-up that sees the result of every POST for the
// machine. An earlier one that finds no server proves nothing. It is the zero time if nothing is in
// doubt.
func (c *call) certain() time.Time {
	if own := c.memory.certain(&c.ref); own.After(c.certainOfPredecessor) {
		return own
	}
	return c.certainOfPredecessor
}

// record returns a copy of the machine's record in this process.
func (c *call) record() record { return c.memory.get(&c.ref) }

// isNew reports whether this process knows every server that the Machine can have: it is young, did
// not come from OpenStack, is the first of its name, and no POST is open.
func (c *call) isNew() bool {
	r := c.record()
	return c.isYoung && !c.fromOpenStack && !r.hasOpenPost() && !r.isOfAnother(&c.ref)
}

// checkElsewhere returns an error if this process has recorded a server or an open POST for the
// machine in another project or region: the Secret or the class was edited, and a POST or a
// deletion here would leak that server.
func (c *call) checkElsewhere() error {
	other, isElsewhere := c.memory.elsewhere(&c.ref)
	if !isElsewhere {
		return nil
	}
	return newError(ReasonOtherProject,
		"machine %s has or may have a server in project %s, region %s, where it was created, "+
			"but its Secret or MachineClass now has project %s, region %s: "+
			"restore the Secret or the class, then delete the machine",
		c.machine, other.project, other.region, c.ref.project, c.ref.region)
}

const (
	// DefaultCreationWait is the default upper limit for the deadline of one CreateMachine or
	// InitializeMachine call. A slow cloud takes more than 5 minutes to boot a server, but a Machine
	// that is deleted during the call stays until the call ends (machine-controller-manager v0.62.1,
	// machine.go:638).
	DefaultCreationWait = 10 * time.Minute
	// MinCreationWait is the lower limit for the deadline of one CreateMachine or InitializeMachine
	// call, even if less is left of the Machine's creation timeout. A shorter call could end before
	// the settle time (WithSettle), after which lists must show the server of a POST whose answer was
	// lost.
	MinCreationWait = time.Minute
	// defaultCreationTimeout is the default of the manager's flag --machine-creation-timeout.
	defaultCreationTimeout = 20 * time.Minute

	// deleteTimeout is the deadline of DeleteMachine; callTimeout in lists.go that of calls that do
	// not wait.
	deleteTimeout = 10 * time.Minute
)

// creationTimes limits how long a creation may wait.
type creationTimes struct {
	// timeout is the age at which the manager gives up on a Machine without a timeout of its own.
	timeout time.Duration
	// wait is the longest deadline of a call.
	wait time.Duration
}

// expires returns when the Machine reaches its creation timeout; the zero time if its age is
// unknown.
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

// deadline returns how long a call may wait for the Machine's server. If a call ends while the
// server boots, the user sees CrashLoopBackOff for a healthy server; a call longer than the
// Machine's timeout keeps the manager from giving up the Machine.
func (t creationTimes) deadline(machine *v1alpha1.Machine, now time.Time) time.Duration {
	expires := t.expires(machine)
	if expires.IsZero() {
		return t.wait
	}
	return max(MinCreationWait, min(expires.Sub(now), t.wait))
}
