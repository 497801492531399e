// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/ledger"
)

const (
	// unawaitedTimeout bounds the DELETEs of servers whose end nobody waits for, all
	// together.
	unawaitedTimeout = 5 * time.Second
	// discardTimeout bounds the wait for a failed server to be in DELETING, or gone: the cluster
	// autoscaler waits for the answer.
	discardTimeout = 10 * time.Second
)

// creation is one CreateMachine.
type creation struct {
	*call
	// lost is the error of the POST, if its outcome is unknown.
	lost error
	// second are the machine's servers beside the one that this call keeps.
	second []Server
	// deleting are those that the last look-up showed in DELETING. Their deletion may be stuck.
	deleting []Server
}

// findOrMake returns the machine's server: the one this process knows, one that a look-up
// finds, or a new one. A POST is sent only after look-ups that could have seen the result
// of every earlier one, and only one a call: after one whose outcome is unknown the machine's
// server is looked for, and the manager's next call makes one if there is none. A machine that came
// from OpenStack has its server, or gets none.
func (c *creation) findOrMake(ctx context.Context) (*poll, error) {
	if c.fromOpenStack {
		return c.takeOver(ctx)
	}
	if err := c.checkExhausted(); err != nil && c.knowsOfNoServer() {
		return nil, err
	}
	if known := c.ledger.Get(c.key).ServerID; known != "" {
		server, err := c.adopt(ctx, known)
		if !errors.Is(err, errUnusable) {
			return server, err
		}
	}
	for {
		seen := c.ledger.Get(c.key)
		server, err := c.lookUp(ctx)
		if !errors.Is(err, errNone) {
			return server, err
		}
		if c.lost != nil {
			return nil, c.lost
		}
		if len(c.deleting) > 0 && isExclusive(c.spec) {
			if err := c.awaitDeleting(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if server, err = c.makeOne(ctx, seen); !errors.Is(err, errOutcomeUnknown) {
			return server, err
		}
		klog.InfoS("The outcome of a create request is unknown, looking for the server", "machine", c.machine, "err", c.lost)
	}
}

// isExclusive reports whether the spec names NICs or volumes: they attach to one server at a time.
func isExclusive(spec *apis.ProviderSpec) bool {
	boot := spec.BootVolume
	return spec.Networking != nil && len(spec.Networking.NICIDs) > 0 || len(spec.Volumes) > 0 ||
		boot != nil && boot.Source != nil && boot.Source.Type == apis.SourceVolume
}

// awaitDeleting waits until the servers in DELETING are gone.
func (c *creation) awaitDeleting(ctx context.Context) error {
	var deletions []*poll
	for i := range c.deleting {
		deletions = append(deletions, c.deletionOf(&c.deleting[i]))
	}
	return c.deleteServers(ctx, deletions)
}

// checkDeleting returns an error if two servers are being deleted: they hold the quota that a
// third one needs, and more of them would pile up.
func (c *creation) checkDeleting() error {
	if len(c.deleting) < 2 {
		return nil
	}
	entry := c.ledger.Get(c.key)
	return cmp.Or(entry.Fault, newError(ReasonNotReady,
		"servers %s and %s of machine %s are still being deleted: no third one is created beside them",
		c.deleting[0].ID, c.deleting[1].ID, c.machine))
}

// knowsOfNoServer says that this process knows of no server of the machine, and that no POST for
// one is open, a predecessor's neither: then an exhausted class answers without a look-up. To let
// one look-up stand for two, nobodyElse asks for more.
func (c *creation) knowsOfNoServer() bool {
	entry := c.ledger.Get(c.key)
	return entry.ServerID == "" && !entry.HasOpenPost() && !c.clock.Now().Before(c.noPredecessorBefore)
}

// makeOne sends the POST and reads the server that its answer names. errOutcomeUnknown says that
// nobody knows whether it made one.
func (c *creation) makeOne(ctx context.Context, seen ledger.Entry) (*poll, error) {
	if err := cmp.Or(c.checkUnlabelled(), c.checkExhausted(), c.checkElsewhere()); err != nil {
		return nil, err
	}
	if err := c.checkDeleting(); err != nil {
		c.deleteUnawaited(ctx) // nobody else asks again for a deletion that is stuck
		return nil, err
	}
	if !c.ledger.Claim(c.key, seen) {
		return nil, newError(ReasonInterrupted, "another call is creating the server of machine %s", c.machine)
	}
	made, err := c.post(ctx)
	if err != nil && (!outcomeUnknown(err) || isExhausted(err)) {
		return nil, c.ended(err)
	}
	c.begin()
	if err != nil {
		c.lost = err
		return nil, errOutcomeUnknown
	}
	p := c.poll(made.ID)
	p.due = p.since.Add(firstPoll)
	c.lost = newError(ReasonNotReady,
		"the answer to the create request of machine %s named server %s, which is somebody else's", c.machine, made.ID)
	err = c.confirm(ctx, p)
	if errors.Is(err, errUnusable) {
		err = errOutcomeUnknown
	}
	return p, err
}

// confirm reads a server until a read shows it. One that the answer to the machine's own POST named
// may still lack its labels until its look-ups should show them.
func (c *creation) confirm(ctx context.Context, p *poll) error {
	for byGet := false; ; byGet = true {
		err := p.present(ctx)
		switch {
		case !errors.Is(err, errUnlabelled):
			return err
		case byGet && !c.clock.Now().Before(c.noPostBefore()):
			return c.labelsMissing(p.last)
		}
		p.absence.onlyGet = true
	}
}

// adopt reads a server that was found, and notes it as the machine's. errUnusable says that
// this call cannot use it, because it is gone or being deleted.
func (c *creation) adopt(ctx context.Context, serverID string) (*poll, error) {
	p := c.poll(serverID)
	err := c.confirm(ctx, p)
	switch {
	case errors.Is(err, errGone):
		return nil, errUnusable
	case err != nil:
		return nil, err
	case p.last.IsDeleting():
		c.deleting = append(c.deleting, *p.last)
		return nil, errUnusable
	}
	c.ledger.Adopt(c.key, serverID)
	return p, nil
}

// lookUp finds the machine's server by name; errNone says that surely none can be used.
func (c *creation) lookUp(ctx context.Context) (*poll, error) {
	for search := c.search(); ; {
		named, err := search.next(ctx)
		if err != nil {
			return nil, err
		}
		own, deleting := withoutDeleting(named.servers)
		c.deleting = deleting
		kept, err := c.keepOne(ctx, own)
		if !errors.Is(err, errUnusable) {
			return kept, err
		}
		if c.isExpired() {
			return nil, newError(ReasonCreationTimedOut,
				"machine %s is older than its creation timeout and has no server: it gets none, and is to be replaced", c.machine)
		}
		named.servers = nil // none that this call can use
		if search.conclusive(named) {
			return nil, errNone
		}
	}
}

// isExpired says that the manager has given the machine up, or is about to.
func (c *creation) isExpired() bool {
	return !c.expires.IsZero() && !c.clock.Now().Before(c.expires)
}

// keepOne adopts the best of the machine's servers that can be used; errUnusable if there is
// none. One in ERROR is the last choice: the call ends with its fault. The others are deleted:
// the manager's orphan collector leaves them alone while the machine is in creation. A list may
// lag: the one to keep is read first.
func (c *creation) keepOne(ctx context.Context, servers []Server) (*poll, error) {
	slices.SortFunc(servers, func(a, b Server) int { return CompareServers(&a, &b) })
	for i := range servers {
		kept, err := c.adopt(ctx, servers[i].ID)
		switch {
		case errors.Is(err, errUnusable):
		case err != nil:
			return nil, err
		default:
			klog.V(2).InfoS("Adopting the machine's server", "machine", c.machine, "server", kept.id, "status", kept.last.Status)
			c.second = servers[i+1:]
			return kept, nil
		}
	}
	return nil, errUnusable
}

// deleteUnawaited asks once for the deletion of the servers that the machine does not use, and
// waits for the answers, but not for long: neither a second server nor one whose deletion is stuck
// may keep a machine from coming up.
func (c *creation) deleteUnawaited(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unawaitedTimeout)
	defer cancel()
	var answers sync.WaitGroup
	for _, server := range slices.Concat(c.second, c.deleting) {
		answers.Go(func() {
			err := c.askToDelete(ctx, server.ID)
			if !server.IsDeleting() {
				c.meters.duplicate(err)
			}
			klog.InfoS("Asked for the deletion of a server that the machine does not use", "machine", c.machine,
				"server", server.ID, "status", server.Status, "err", err)
		})
	}
	answers.Wait()
}

// askToDelete sends a DELETE in a goroutine of its own.
func (c *creation) askToDelete(ctx context.Context, serverID string) (err error) {
	defer recovered(&err)
	return c.client.DeleteServer(ctx, serverID)
}

// discard asks once for the deletion of a server in ERROR, and waits only until it is under way:
// what it ran into is to be told now. The machine's next call finds it if this failed.
func (c *creation) discard(ctx context.Context, p *poll) {
	klog.InfoS("Deleting a server that ended in ERROR", "machine", c.machine, "server", p.id,
		"reason", sanitize(p.last.reason(c.spec.UserData).Error()))
	deletion := c.deletionOf(p.last)
	limited, cancel := context.WithTimeout(ctx, unawaitedTimeout)
	err := deletion.sendDelete(limited)
	cancel()
	var api *APIError
	if errors.As(err, &api) && api.StatusCode != 0 {
		klog.ErrorS(err, "Deleting a failed server failed", "machine", c.machine, "server", p.id)
		return
	}
	limited, cancel = context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	for !deletion.last.IsDeleting() {
		if _, err := deletion.next(limited); err != nil {
			return // as a rule it is gone
		}
	}
}

// post sends the POST, which the ledger knows of already, and notes how it ended.
func (c *creation) post(ctx context.Context) (*Server, error) {
	end := c.ledger.OutcomeUnknown // also that of a panic
	defer func() { end(c.key) }()
	server, err := c.client.CreateServer(ctx, c.serverRequest())
	switch {
	case err == nil:
		end = func(key ledger.Key) { c.ledger.Accepted(key, server.ID) }
		klog.V(2).InfoS("Server created", "machine", c.machine, "server", server.ID)
	case !outcomeUnknown(err):
		end = c.ledger.Refused
	}
	c.noteExhausted(err)
	return server, err
}

// failed is the answer where the server did not become ready: err says why. One that is
// in ERROR is deleted, unless it came from OpenStack, and its fault is the answer; one that was
// deleted under us is made again by the manager's next call, not by this one.
func (c *creation) failed(ctx context.Context, p *poll, err error) error {
	switch {
	case errors.Is(err, errGone), errors.Is(err, errUnusable):
		return newError(ReasonInterrupted,
			"the server of machine %s was deleted while it was being created", c.machine)
	case !errors.Is(err, errFaulty):
		return err
	}
	fault := faultyError(p.last, c.spec.UserData)
	if c.fromOpenStack {
		return fault
	}
	c.noteExhausted(fault)
	if _, text := Classify(fault); c.failsLikeOthers(p.id) && ReasonIn(text) == ReasonServerFailed {
		fault = newError(ReasonServersFail, "the last servers of the class all ended in ERROR: %v", fault)
	}
	c.ledger.Failed(c.key, p.id, fault)
	c.discard(ctx, p)
	return fault
}

// failsLikeOthers notes that a server of the class ended in ERROR. It reports whether another one had when
// this one's POST was sent, and none has become ACTIVE since: STACKIT publishes no list of what it says when a
// zone is full.
func (c *creation) failsLikeOthers(serverID string) bool {
	class := c.specKey()
	since, _ := c.failing.Lookup(class)
	if since.IsZero() {
		c.failing.Set(class, c.clock.Now())
		return false
	}
	entry := c.ledger.Get(c.key)
	return entry.PostedAt(serverID).After(since)
}

// awaitReady waits until the server runs, each of its NICs has an address, and those of
// the spec carry the allowedAddresses; it returns the addresses in a stable order.
// errFaulty says that the server is in ERROR, errUnusable that it is being deleted. A step that
// fails is tried again with the next read, unless the API refuses it.
func (p *poll) awaitReady(ctx context.Context) ([]corev1.NodeAddress, error) {
	p.begin()
	for server := p.last; ; {
		if server != nil {
			addresses, err := p.makeReady(ctx, server)
			if err != nil || addresses != nil {
				return addresses, err
			}
		}
		seen, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		server = seen.server()
	}
}

// makeReady does the next step for a server that was just read. It returns neither
// addresses nor an error if the server must be read again first.
func (p *poll) makeReady(ctx context.Context, server *Server) ([]corev1.NodeAddress, error) {
	p.missing = ""
	switch {
	case server.Status == statusError:
		return nil, errFaulty
	case server.IsDeleting():
		return nil, errUnusable
	case server.Status != statusActive:
		return nil, nil
	}
	p.failing.Set(p.specKey(), time.Time{})
	connected, err := p.connect(ctx, p.id)
	if err == nil && connected.complete() {
		return connected.addresses, nil
	}
	p.missing = connected.missing()
	return nil, p.steps.afterStep(ctx, err, p.state())
}

const (
	// exhaustedFor is how long a class that ran out of quota or capacity, or whose machine type
	// does not exist, is answered so again without a POST: every event of a class makes the manager
	// call for all of its machines, whatever its retry period.
	exhaustedFor = time.Minute
	// unlabelledFor is how long the other machines of a class get no server after one showed no
	// labels: an API that drops them must not fill a project with servers that nobody finds.
	unlabelledFor = time.Hour
)

// classErrors remember why servers of a class are not asked for.
type classErrors = recent.Map[classKey, classError]

// classKey names a class across sessions, where it matters with the providerSpec that was refused:
// another may be served.
type classKey struct {
	endpoint, projectID, region, class string
	spec                               [sha256.Size]byte
}

// classError is what a class's machines are answered, and until when.
type classError struct {
	err   error
	until time.Time
	// machine is the one whose server shows no labels.
	machine string
}

func (c *call) classKey() classKey {
	return classKey{endpoint: c.key.Endpoint, projectID: c.key.ProjectID, region: c.key.Region, class: c.class}
}

func (c *call) specKey() classKey {
	key := c.classKey()
	key.spec = sha256.Sum256(c.rawSpec)
	return key
}

// noteExhausted remembers the error if it says that something is exhausted.
func (c *call) noteExhausted(err error) {
	if isExhausted(err) {
		c.exhausted.Set(c.specKey(), classError{err: err, until: c.clock.Now().Add(exhaustedFor)})
	}
}

// checkExhausted returns the error that the class ran out with, if it still holds.
func (c *call) checkExhausted() error {
	if found, ok := c.exhausted.Lookup(c.specKey()); ok && c.clock.Now().Before(found.until) {
		return found.err
	}
	return nil
}

// labelsMissing is the answer about a server that the answer to the machine's POST named: it has
// the machine's name, and no machine label, though look-ups should find it by now. It may be
// anybody's, and is neither used nor deleted.
func (c *call) labelsMissing(server *Server) error {
	labels := labelSelector(c.serverLabels(c.cluster))
	// The hour begins when look-ups should find what the POST made, not with each call of its machine.
	until := c.noPostBefore().Add(unlabelledFor)
	if known, ok := c.unlabelled.Lookup(c.classKey()); !ok || known.until.Before(until) {
		c.unlabelled.Set(c.classKey(), classError{
			err: newError(ReasonLabelsMissing,
				"server %s was created for machine %s without its labels: MachineClass %s gets no other servers for an hour; "+
					"only if it is that machine's, set %s on it, else rename it", server.ID, c.machine, c.class, labels),
			until: until, machine: c.machine,
		})
	}
	return newError(ReasonLabelsMissing,
		"server %s has the name of machine %s and no machine label: only if it is this machine's, set %s on it; "+
			"if it is not, rename it", server.ID, c.machine, labels)
}

// checkUnlabelled returns an error if a server of another machine of the class shows no labels.
func (c *call) checkUnlabelled() error {
	found, ok := c.unlabelled.Lookup(c.classKey())
	if ok && c.clock.Now().Before(found.until) && found.machine != c.machine {
		return found.err
	}
	return nil
}
