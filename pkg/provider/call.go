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

// call is a driver call with its request decoded and checked.
type call struct {
	identity
	*readers
	// ref names the Machine's record, and where its servers are.
	ref machineRef
	// serverID is the server that the request's ProviderID, givenID, names; "" if it names none.
	serverID, givenID string
	// spec has its defaults set. A lenient call has few of its fields. specHash is that of the providerSpec in a strict call.
	spec     *apis.ProviderSpec
	specHash specHash
	// networkErrors say why the spec's networking cannot be read.
	networkErrors field.ErrorList
	// isDeleted reports whether the Machine has a deletionTimestamp, neverJoined whether it is deleted because it
	// never had a Node.
	isDeleted, neverJoined bool
	// isYoung reports whether the memory has all that can have been done for the machine: it is younger than this
	// process's leadership, and than the time for which records are kept.
	isYoung bool
	// certainOfPredecessor is when a look-up must begin so that it sees every POST of a predecessor; the zero time if
	// none has worked on the machine.
	certainOfPredecessor time.Time
	// expires is when its MachineSet replaces the Machine, if it has no Node by then; the zero time if nobody does.
	expires time.Time

	// began, hasWorked, placeSeen and failed are of waits (wait.go): when the call began, whether a read or write of it has
	// succeeded, whether a read has shown its project and region, and the last API call that failed. They are atomic, for
	// servers that are deleted in parallel.
	began                time.Time
	hasWorked, placeSeen atomic.Bool
	failed               atomic.Pointer[APIError]
}

// strictness of decoding a request.
type strictness bool

const (
	// strict asks for a valid spec: the call is going to use it.
	strict strictness = true
	// lenient needs project, region and identity only, and decodes little more: a machine whose class was
	// broken after it was made must still be found and deleted.
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

// refTo names a Machine's record, without a place.
func refTo(machine *v1alpha1.Machine) *machineRef {
	return &machineRef{
		machineKey: machineKey{machine.Namespace, machine.Name}, uid: string(machine.UID), created: machine.CreationTimestamp.Time,
	}
}

// newCall decodes and checks a request, and opens the session. machine is nil for a call
// about a class. All that is wrong is told at once, with the paths of the fields.
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
		if !p.withoutTarget {
			c.neverJoined = p.creation.neverJoined(machine)
		}
		if !p.withoutTarget && metav1.GetControllerOf(machine) != nil { // nobody replaces another one: it gets its server late
			c.expires = p.creation.expires(machine)
		}
	}
	return c, nil
}

// newSessionCall is a call that knows nothing but where to read.
func (p *Provider) newSessionCall(session *spi.Session, region string) *call {
	return &call{
		began: p.clock.Now(), readers: p.readersOf(session, region), identity: identity{unlabelable: true},
		ref: machineRef{place: place{session.Endpoint, session.ProjectID, region}},
	}
}

// serverRequest is the machine's server.
func (c *call) serverRequest() *ServerRequest {
	return &ServerRequest{Name: c.machine, Labels: c.serverLabels(c.spec.Labels), Spec: c.spec}
}

// warn logs what is odd but not wrong in a class, each thing once an hour at most.
func (p *Provider) warn(in *inputs) {
	class := in.identity.class
	if problems := sanitize(in.unknownText()); problems != "" && p.noteWarning("fields "+class+problems) {
		klog.InfoS("The MachineClass's providerSpec has fields that are not understood; they are ignored",
			"machineClass", loggable(class), "problems", problems)
	}
	if len(in.identity.cluster) == 0 && p.noteWarning("cluster "+class) {
		klog.InfoS("The MachineClass's providerSpec.labels have no cluster label (a key that ends in /cluster): "+
			"machines are told apart by machine and class name only",
			"machineClass", loggable(class))
	}
}

// certain returns when a look-up must begin so that it sees the result of every
// POST for the machine. One that begins earlier proves nothing if it finds no server. It is
// the zero time if nothing is in doubt.
func (c *call) certain() time.Time {
	if own := c.memory.certain(&c.ref); own.After(c.certainOfPredecessor) {
		return own
	}
	return c.certainOfPredecessor
}

// record returns a copy of what this process knows of the machine.
func (c *call) record() record { return c.memory.get(&c.ref) }

// isNew reports whether this process knows of every server that the Machine can have: it is young, did not come from
// OpenStack, is the first of its name, and no POST is open.
func (c *call) isNew() bool {
	r := c.record()
	return c.isYoung && !c.fromOpenStack && !r.hasOpenPost() && !r.isOfAnother(&c.ref)
}

// checkElsewhere returns an error if this process knows of a server, or of an open POST, for the machine in another
// project or region: the Secret or the class was edited, and a POST or a deletion here would lose that server.
func (c *call) checkElsewhere() error {
	other, isElsewhere := c.memory.elsewhere(&c.ref)
	if !isElsewhere {
		return nil
	}
	return newError(ReasonOtherProject,
		"machine %s has or may have a server in project %s, region %s, where it was created, "+
			"but its Secret or MachineClass names project %s, region %s now: restore them, or delete the machine with them",
		c.machine, other.project, other.region, c.ref.project, c.ref.region)
}

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

	// deleteTimeout is the deadline of DeleteMachine; callTimeout in lists.go that of calls
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

// expires returns when the Machine is older than its creation timeout; the zero time if its age is unknown.
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
