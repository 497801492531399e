// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// sideDeleteTimeout limits the DELETEs without a wait for their effect, all together.
	sideDeleteTimeout = 5 * time.Second
	// discardTimeout limits the wait for a failed server to be DELETING or gone: the cluster
	// autoscaler waits for the answer.
	discardTimeout = 10 * time.Second
)

// creation is one CreateMachine call.
type creation struct {
	*call
	// lookupBegan is when the last look-up began.
	lookupBegan time.Time
	// lost is the error of a POST that may have created a server.
	lost error
	// surplus are the Machine's servers other than the kept one. deleting are those that the last
	// look-up showed in DELETING; their deletion may be stuck.
	surplus, deleting []Server
}

// findOrCreate returns the Machine's server: from the record, from a look-up, or a new one. A POST
// follows look-ups that could have seen the result of every earlier one, and a call sends at most
// one: if its outcome is unknown, look-ups find its server or prove that there is none, and the
// manager's next call sends the next POST. A Machine from OpenStack never gets a new server.
func (c *creation) findOrCreate(ctx context.Context) (*tracked, error) {
	if c.fromOpenStack {
		return c.takeOver(ctx)
	}
	if _, err := c.nextChoice(); err != nil && c.isWithoutServer() {
		return nil, err
	}
	if known := c.record().serverID; known != "" {
		if server, err := c.adopt(ctx, c.track(known)); !errors.Is(err, errUnusable) {
			return server, err
		}
	}
	for {
		server, err := c.findOne(ctx)
		switch {
		case !errors.Is(err, errNone):
			return server, err
		case c.lost != nil:
			return nil, c.lost
		case len(c.deleting) > 0 && c.spec.IsExclusive():
			if err := c.awaitDeleting(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if server, err = c.createOne(ctx); !errors.Is(err, errOutcomeUnknown) {
			return server, err
		}
		klog.InfoS("Outcome of a create request unknown; looking for the server", "machine", c.machine, "err", c.lost)
	}
}

// isWithoutServer reports whether this process knows of no server of the Machine, and of no POST
// that may have created one, including a predecessor's: then an exhausted class needs no look-up.
func (c *creation) isWithoutServer() bool {
	r := c.record()
	return r.serverID == "" && !r.hasOpenPost() && !c.clock.Now().Before(c.certainOfPredecessor)
}

// isExpired reports whether the manager has given up the Machine, or is about to, and replaces it.
func (c *creation) isExpired() bool {
	return !c.expires.IsZero() && !c.clock.Now().Before(c.expires)
}

// findOne looks the Machine's server up by name, and adopts it. errNone: there is no usable one.
func (c *creation) findOne(ctx context.Context) (*tracked, error) {
	for look := c.lookup(); ; {
		found, err := look.next(ctx)
		if err != nil {
			return nil, err
		}
		c.lookupBegan = found.began
		found.servers, c.deleting = withoutDeleting(found.servers)
		kept, err := c.keepOne(ctx, found.servers)
		if !errors.Is(err, errUnusable) {
			return kept, err
		}
		if c.isExpired() {
			return nil, newError(ReasonCreationTimedOut,
				"machine %s is older than its creation timeout and has no server: its MachineSet replaces the machine", c.machine)
		}
		found.servers = nil // no server that this call can use
		if look.isSure(found) {
			return nil, errNone
		}
	}
}

// keepOne adopts the best of the Machine's servers; errUnusable if none is usable. A server in
// ERROR is the last choice: the call ends with its fault. The others are deleted, because the
// manager's orphan collector ignores them while the Machine is being created.
func (c *creation) keepOne(ctx context.Context, servers []Server) (*tracked, error) {
	slices.SortFunc(servers, func(a, b Server) int { return CompareServers(&a, &b) })
	for i := range servers {
		listed := c.track(servers[i].ID)
		listed.getOnly = true // the list may be old: a GET decides
		kept, err := c.adopt(ctx, listed)
		if errors.Is(err, errUnusable) {
			continue
		}
		c.surplus = servers[i+1:]
		return kept, err
	}
	return nil, errUnusable
}

// adopt reads a server, and records it as the Machine's. errUnusable: it is gone or being deleted.
func (c *creation) adopt(ctx context.Context, t *tracked) (*tracked, error) {
	err := t.awaitLabelled(ctx)
	switch {
	case errors.Is(err, errGone):
		return nil, errUnusable
	case err != nil:
		return nil, err
	case t.last.server.IsDeleting():
		c.deleting = append(c.deleting, *t.last.server)
		c.memory.drop(&c.ref, t.id)
		return nil, errUnusable
	}
	c.memory.adopt(&c.ref, t.id)
	klog.V(2).InfoS("Adopting the machine's server", "machine", c.machine, "server", t.id, "status", t.last.server.Status)
	return t, nil
}

// awaitLabelled reads a server until a read shows it. A server that the Machine's own POST created
// may lack its labels until look-ups should show them.
func (t *tracked) awaitLabelled(ctx context.Context) error {
	for wasRead := false; ; wasRead = true {
		err := t.awaitShown(ctx)
		switch {
		case !errors.Is(err, errUnlabelled):
			return err
		case wasRead && !t.call.clock.Now().Before(t.call.certain()):
			return t.call.labelsMissing(t.last.server)
		}
		t.getOnly = true
	}
}

// createOne sends the POST, and reads the server in its answer. errOutcomeUnknown: the POST may
// have created another server.
func (c *creation) createOne(ctx context.Context) (*tracked, error) {
	choice, err := c.nextChoice()
	if err != nil {
		return nil, err
	}
	if len(c.deleting) > 1 { // they use up the quota for a third one
		c.deleteAside(ctx) // nothing else repeats a stuck deletion
		if fault := c.record().fault; fault != nil && !isRetried(fault) {
			return nil, fault
		}
		return nil, newError(ReasonNotReady,
			"servers %s and %s of machine %s are still being deleted: no third server is created until one is gone",
			c.deleting[0].ID, c.deleting[1].ID, c.machine)
	}
	switch err := c.memory.claim(&c.ref, c.class, choice, c.lookupBegan); {
	case errors.Is(err, errUnseen):
		return nil, newError(ReasonNotReady, "servers of class %s were created, but no read has shown them: "+
			"the next server is created 1 to 16 minutes after the last one, or once a read shows a server of the class "+
			"(check that the service account may read servers)", c.class)
	case err != nil:
		return nil, newError(ReasonInterrupted, "another call is already creating the server of machine %s", c.machine)
	}
	created, err := c.post(ctx, choice)
	if err != nil && (!outcomeUnknown(err) || isExhausted(err)) {
		return nil, c.ended(c.noteExhausted(err, choice))
	}
	if err != nil {
		c.lost = err
		return nil, errOutcomeUnknown
	}
	t := c.track(created.ID)
	t.polls.first = firstPoll + c.spread(minPoll)
	t.due = t.polls.since.Add(t.polls.first)
	c.lost = newError(ReasonNotReady,
		"the create request for machine %s returned server %s, which does not belong to this machine", c.machine, created.ID)
	if err = t.awaitLabelled(ctx); errors.Is(err, errUnusable) {
		err = errOutcomeUnknown
	}
	return t, err
}

// post sends a claimed POST, and records its outcome.
func (c *creation) post(ctx context.Context, choice apis.Choice) (*Server, error) {
	end := c.memory.lost // also after a panic
	defer func() { end(&c.ref) }()
	if choice != c.spec.Choices()[0] {
		c.meters.fellBack(c.class, choice)
		klog.InfoS("Requesting a server with a fallback of its MachineClass", "machine", c.machine, "machineClass", c.class,
			"machineType", choice.MachineType, "zone", choice.AvailabilityZone)
	}
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
	server, err := c.client.CreateServer(ctx, c.serverRequest(choice))
	switch {
	case err == nil:
		end = func(ref *machineRef) { c.memory.accepted(ref, server.ID) }
		klog.V(2).InfoS("Server creation accepted", "machine", c.machine, "server", server.ID)
	case !outcomeUnknown(err) && !written.Load():
		end = c.memory.unsent
	case !outcomeUnknown(err):
		end = c.memory.refused
	}
	return server, err
}

// awaitDeleting waits until the servers in DELETING are gone.
func (c *creation) awaitDeleting(ctx context.Context) error {
	var deletions []*tracked
	for i := range c.deleting {
		deletions = append(deletions, c.deletionOf(&c.deleting[i], false))
	}
	return c.deleteServers(ctx, deletions)
}

// deleteAside sends a DELETE for each server that the Machine does not use, and waits for the
// answers only: neither a surplus server nor a stuck deletion may keep a Machine from coming up.
func (c *creation) deleteAside(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sideDeleteTimeout)
	defer cancel()
	var answers sync.WaitGroup
	for _, server := range slices.Concat(c.surplus, c.deleting) {
		answers.Go(func() {
			var err error
			defer recovered(&err)
			if err = c.client.DeleteServer(ctx, server.ID); err == nil {
				c.memory.deleteAccepted(&c.ref, server.ID)
			}
			if !server.IsDeleting() {
				c.meters.duplicate(err)
			}
			klog.InfoS("Sent a DELETE for a server that has the Machine's name and is not used",
				"machine", c.machine, "server", server.ID, "status", server.Status, "err", err)
		})
	}
	answers.Wait()
}

// failed returns the error of a call whose server did not become ready because of err. A server in
// ERROR is deleted, unless it came from OpenStack, and its fault is the error. A server that was
// deleted meanwhile is replaced by the manager's next call.
func (c *creation) failed(ctx context.Context, t *tracked, err error) error {
	switch {
	case errors.Is(err, errGone), errors.Is(err, errUnusable):
		return newError(ReasonInterrupted, "the server of machine %s was deleted while it was being created", c.machine)
	case !errors.Is(err, errFaulty):
		return err
	}
	fault := faultyError(t.last.server, c.spec)
	if c.fromOpenStack {
		return fault
	}
	if known := c.record(); known.faulty == t.id && known.fault != nil { // told before, but its DELETE failed
		fault = known.fault
	} else {
		fault = c.noteFault(t, fault)
	}
	c.memory.failed(&c.ref, t.id, fault)
	c.discard(ctx, t)
	return fault
}

// noteFault records what a server in ERROR shows about its class, an exhausted choice or quota or one
// more failure, and returns the error for the manager.
func (c *creation) noteFault(t *tracked, fault error) error {
	fault = c.noteExhausted(fault, c.choiceOf(t.last.server))
	if isRetried(fault) {
		return fault
	}
	if _, text := Classify(fault); c.failsLikeOthers(t.id) && ReasonIn(text) == ReasonServerFailed {
		return newError(ReasonServersFail, "all recent servers of the class ended in ERROR: %v", fault)
	}
	return fault
}

// discard sends a DELETE for a server in ERROR, and waits only until its deletion is in progress,
// so that the fault is returned soon. If the DELETE fails, the Machine's next call finds the
// server.
func (c *creation) discard(ctx context.Context, failed *tracked) {
	klog.InfoS("Deleting a server in ERROR", "machine", c.machine, "server", failed.id,
		"reason", sanitize(failed.last.server.reason(c.spec).Error()))
	deletion := c.deletionOf(failed.last.server, failed.last.everListed)
	limited, cancel := context.WithTimeout(ctx, sideDeleteTimeout)
	err := deletion.sendDelete(limited)
	cancel()
	if err != nil {
		klog.ErrorS(err, "Failed to delete a server in state ERROR", "machine", c.machine, "server", failed.id)
		return
	}
	deletion.due = c.clock.Now().Add(minPollGap)
	limited, cancel = context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	for !deletion.last.server.IsDeleting() {
		if _, err := deletion.poll(limited); err != nil {
			return // usually it is gone
		}
	}
}

// failsLikeOthers records that a server of the class ended in ERROR, and reports whether another
// had done so when this one's POST was sent, with none ACTIVE since. STACKIT does not document its
// messages for a full zone.
func (c *creation) failsLikeOthers(serverID string) bool {
	class := c.specKey()
	since, _ := c.failing.Lookup(class)
	if since.IsZero() {
		c.failing.Set(class, c.clock.Now())
		return false
	}
	post := c.record().post
	return post.named == serverID && post.sent.After(since)
}

// awaitReady waits until the server runs, each of its NICs has an address, and the spec's NICs
// carry the allowedAddresses; it returns the addresses in a stable order. errFaulty: the server is
// in ERROR; errUnusable: it is being deleted.
func (t *tracked) awaitReady(ctx context.Context) ([]corev1.NodeAddress, error) {
	for server := t.last.server; ; {
		if server != nil {
			addresses, err := t.makeReady(ctx, server)
			if err != nil || addresses != nil {
				return addresses, err
			}
		}
		var err error
		if server, err = t.poll(ctx); err != nil {
			return nil, err
		}
	}
}

// makeReady takes the next step for a server that was just read. It returns neither addresses nor
// an error if the server must be read again first. A failed step is repeated with the next read,
// unless the API refuses it.
func (t *tracked) makeReady(ctx context.Context, server *Server) ([]corev1.NodeAddress, error) {
	t.missing = ""
	switch {
	case server.Status == statusError:
		return nil, errFaulty
	case server.IsDeleting():
		return nil, errUnusable
	case server.Status != statusActive:
		return nil, nil
	}
	c := t.call
	c.failing.Set(c.specKey(), time.Time{})
	connected, err := c.connect(ctx, t.id)
	if err == nil && connected.complete() {
		return connected.addresses, nil
	}
	t.missing = connected.missing()
	return nil, t.steps.afterStep(ctx, err, t.state())
}

// exhaustedFor is how long a class that ran out of quota, or a choice of it that has no capacity or
// whose machine type does not exist, gets the same answer without a POST: every event of a class
// makes the manager call for all of its Machines, regardless of its retry period.
const exhaustedFor = time.Minute

// classErrors are the last errors of exhausted classes and choices.
type classErrors = recent.Map[classKey, classError]

// classKey identifies a class across sessions, and where it matters its refused providerSpec, since
// another one may succeed.
type classKey struct {
	place
	class string
	spec  specHash
	// choice is zero for all of the class's.
	choice apis.Choice
}

// classError is the answer to a class's Machines until the given time.
type classError struct {
	err   error
	until time.Time
}

func (c *call) classKey() classKey { return classKey{place: c.ref.place, class: c.class} }

func (c *call) specKey() classKey {
	key := c.classKey()
	key.spec = c.specHash
	return key
}

// noteExhausted records the error of a choice's server if it exhausts the class or the choice. It
// returns the error for the manager: Unavailable while another choice is left.
func (c *creation) noteExhausted(err error, choice apis.Choice) error {
	if !isExhausted(err) {
		return err
	}
	key := c.specKey()
	switch {
	case isAboutChoice(err):
		key.choice = choice
		c.memory.noCapacity(&c.ref, choice)
	case len(c.record().tried) > 0 && len(c.deleting) > 0:
		return newError(ReasonNotReady,
			"the failed server of machine %s uses quota until its deletion is complete: %v", c.machine, err)
	}
	_, text := Classify(err)
	reason := ReasonIn(text)
	if len(c.spec.Fallbacks) > 0 {
		err = &Error{Reason: reason, Text: choice.String() + ": " + strings.TrimPrefix(text, reason.with("")), err: err}
	}
	c.exhausted.Set(key, classError{err: err, until: c.clock.Now().Add(exhaustedFor)})
	next, none := c.nextChoice()
	if none != nil {
		return err
	}
	return &Error{Reason: reason, Text: fmt.Sprintf("%s; next: %s", choice, next), isRetried: true, err: err}
}

// nextChoice returns the choice for the Machine's next server: the first that has failed neither in
// the Machine's round nor, for exhaustedFor, for another Machine of the class. The error is that of
// an exhausted class.
func (c *call) nextChoice() (apis.Choice, error) {
	err := c.exhaustedBy(apis.Choice{})
	if err != nil {
		return apis.Choice{}, err
	}
	choices, r := c.spec.Choices(), c.record()
	tried := r.tried
	if r.isOfAnother(&c.ref) {
		tried = nil
	}
	for _, choice := range choices {
		known := c.exhaustedBy(choice)
		if known == nil && !slices.Contains(tried, choice) {
			return choice, nil
		}
		err = cmp.Or(known, err)
	}
	if err != nil {
		return apis.Choice{}, err
	}
	return choices[0], nil // the class was edited, and had no capacity for what is left of it
}

// exhaustedBy returns the recorded error of a choice, or of the whole class, while it holds.
func (c *call) exhaustedBy(choice apis.Choice) error {
	key := c.specKey()
	key.choice = choice
	if found, ok := c.exhausted.Lookup(key); ok && c.clock.Now().Before(found.until) {
		return found.err
	}
	return nil
}

// choiceOf returns the choice that a server of the Machine was created with: the last POST's, also
// if its answer was lost. After a restart the choice follows from the server's machine type and
// zone.
func (c *creation) choiceOf(server *Server) apis.Choice {
	choices := c.spec.Choices()
	if len(choices) == 1 {
		return choices[0]
	}
	if r := c.record(); r.post.isOpen && (r.post.named == server.ID || r.post.named == "") {
		return r.post.choice
	}
	is := apis.Choice{MachineType: server.MachineType, AvailabilityZone: server.Zone}
	if slices.Contains(choices, is) {
		return is
	}
	for _, choice := range choices {
		if choice.MachineType == is.MachineType && (choice.AvailabilityZone == "" || is.AvailabilityZone == "") {
			return choice
		}
	}
	return is // the class was edited since
}

// labelsMissing returns the error for a server from the answer to the Machine's POST that has the
// Machine's name, but still no machine label although look-ups should find it. It may have another
// owner, so it is neither used nor deleted.
func (c *call) labelsMissing(server *Server) error {
	return newError(ReasonLabelsMissing,
		"server %s has the name of machine %s, but no machine label: set %s on it only if the server is this "+
			"machine's, otherwise rename it", server.ID, c.machine, labelSelector(c.serverLabels(c.cluster)))
}
