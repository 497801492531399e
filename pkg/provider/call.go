// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// call is a driver call with its decoded and checked request, whose identity it has (ownership.go). The
// readers are what its session shares (reads.go); they have the state of the whole process (provider.go).
type call struct {
	identity
	*readers
	// ref identifies the Machine's record.
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
	// certainOfPredecessor is the earliest start of a list that shows every server of a predecessor of
	// this process; the zero time if none has worked on the Machine.
	certainOfPredecessor time.Time
	// expires is when the Machine's MachineSet replaces it if it has no Node; the zero time if no
	// MachineSet does.
	expires time.Time

	// watches are the servers that the call reads, by ID; lists are the failures of its lists.
	watches map[string]*watch
	lists   *failures
	// The rest is for failures: when the call began, whether one of its reads or writes succeeded,
	// whether a read has shown its project and region, and the last API call that failed.
	began                time.Time
	hasWorked, placeSeen bool
	failed               error
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
	c, err := p.newCall(machine, class, secret, mode)
	if err != nil || machine.Spec.ProviderID == "" {
		return c, err
	}
	c.givenID = machine.Spec.ProviderID
	if c.serverID, err = providerid.Parse(c.givenID, c.place.project); err != nil {
		return nil, newError(ReasonInvalidInput, "machine %s: %w", machine.Name, err)
	}
	return c, nil
}

func refTo(machine *v1alpha1.Machine) *machineRef {
	return &machineRef{types.NamespacedName{Namespace: machine.Namespace, Name: machine.Name}, machine.UID}
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
	p.meters.keyExpires(c.class, session.KeyExpiry)
	if machine != nil {
		c.ref = *refTo(machine)
		c.isDeleted = machine.DeletionTimestamp != nil
		c.certainOfPredecessor = p.certainOfPredecessor(machine)
		if !p.withoutTarget && metav1.GetControllerOf(machine) != nil { // others are not replaced
			c.expires = p.expires(machine)
		}
	}
	return c, nil
}

// newSessionCall returns a call that has only a session and a region.
func (p *Provider) newSessionCall(session *spi.Session, region string) *call {
	c := &call{
		began: p.clock.Now(), readers: p.readersOf(session, region), identity: identity{unlabelable: true},
		watches: map[string]*watch{},
	}
	c.lists = c.newFailures()
	return c
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

// maxLogged limits a logged ProviderID or name, in bytes: a ProviderID of ours has 84. Each call
// logs them, and the author of a Machine may choose a megabyte.
const maxLogged = 128

// loggable returns a printable part of text from outside: klog quotes it only if it has one line.
func loggable(text string) string {
	return printable(strings.ToValidUTF8(text[:min(len(text), maxLogged)], ""))
}

// record returns a copy of the Machine's record.
func (c *call) record() (copied record) {
	c.records.change(&c.ref, func(known *record) { copied = *known })
	return copied
}

// certain returns the earliest start of a list that shows every server of the Machine: neither a POST
// nor the end of a deletion rests on an earlier one.
func (c *call) certain() time.Time {
	known := c.record()
	return later(known.certain(c.clock.Now(), c.settle), c.certainOfPredecessor)
}

// join counts the call among those that may share the list of their scope, until the returned function
// is called.
func (c *call) join() (leave func()) {
	if c.unlabelable {
		return func() {}
	}
	all := c.servers()
	all.users.Add(1)
	return func() { all.users.Add(-1) }
}

// servers returns the shared list of the call's scope.
func (c *call) servers() *sharedList[Server] { return c.serversOf(c.scope()) }

// isShared reports whether so many calls are in progress in the scope that they share its list.
func (c *call) isShared() bool { return !c.unlabelable && c.servers().users.Load() >= shareFrom }

// isOlderWithoutID reports whether the Machine has no ProviderID and is older than this leadership: it may have
// a server that a predecessor requested, or one from OpenStack that nobody has marked yet.
func (c *call) isOlderWithoutID() bool {
	return !c.certainOfPredecessor.IsZero() && c.serverID == "" && !c.fromOpenStack
}

// find lists the Machine's servers: by its labels or, if it came from OpenStack and has no ProviderID,
// by its name. began is when the list began. For an older Machine the last list must be the project's: a
// server there that has its name and no machine label is an error.
func (c *call) find(ctx context.Context, due time.Time) (own []Server, began time.Time, err error) {
	if c.unlabelable && !c.byName {
		return nil, c.certain(), nil // no server can carry its labels
	}
	selector, isWhole := c.machineSelector(), c.needsProject(later(due, c.clock.Now()))
	if isWhole {
		selector = nil
	}
	all, err := c.list(ctx, due, selector, fmt.Sprintf("the servers of machine %s are not known yet", c.machine))
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, server := range all.items {
		isFound := matches(&server, c.machineSelector()) || c.byName && server.Name == c.machine
		if isFound && c.checkOwned(&server, false) == nil {
			own = append(own, server)
		}
	}
	if c.isOlderWithoutID() && !isWhole { // it shows no server without labels, and so is never late enough
		return own, time.Time{}, nil
	}
	if c.isOlderWithoutID() && len(own) == 0 {
		err = c.checkUnlabelled(all.items)
	}
	return own, all.began, err
}

// needsProject reports whether a list that begins then must show the servers without labels, too.
func (c *call) needsProject(then time.Time) bool {
	return c.byName || c.isOlderWithoutID() && !then.Before(c.certain())
}

// list lists servers with the labels of the selector, and maybe others; nil means all of the project. A
// failed list is repeated. state is the last known state, for the text of a timeout.
func (c *call) list(
	ctx context.Context, due time.Time, selector map[string]string, state string,
) (*list[Server], error) {
	for {
		all := c.listOnce(ctx, due, selector)
		if ends := c.lists.afterRead(ctx, all.err, state); ends != nil || all.err == nil {
			c.placeSeen = c.placeSeen || ends == nil
			return all, ends
		}
		due = c.lists.retry.due()
	}
}

// listOnce reads the project's list without a selector, the scope's if enough calls share it, else the
// selector's own.
func (c *call) listOnce(ctx context.Context, due time.Time, selector map[string]string) *list[Server] {
	switch {
	case selector == nil:
		return c.serversOf(nil).get(ctx, due)
	case c.isShared():
		return c.servers().get(ctx, due)
	}
	all := &list[Server]{}
	if all.err = c.sleepUntil(ctx, due); all.err == nil {
		all.began, all.err = c.read(ctx, func(ctx context.Context) (err error) {
			all.items, err = c.listServers(ctx, selector)
			return err
		})
	}
	return all
}
