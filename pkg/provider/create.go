// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/ledger"
)

const (
	// maxPosts is how many POSTs one CreateMachine may send, each after it is certain
	// that the one before made nothing.
	maxPosts = 3
	// timeForPost is what must be left of a CreateMachine for a POST after the first.
	timeForPost = time.Minute
	// unawaitedTimeout bounds the DELETEs of servers whose end nobody waits for, all
	// together.
	unawaitedTimeout = 5 * time.Second
)

// creation is one CreateMachine.
type creation struct {
	*call
	// posts is how many POSTs were sent, lost the error of the last one whose outcome is
	// unknown.
	posts int
	lost  error
	// unawaited are servers to delete whose end nobody waits for.
	unawaited []unawaited
}

// unawaited is a server to delete: a second one, or one whose deletion may be stuck.
type unawaited struct {
	Server
	second bool
}

// findOrMake returns the machine's server: the one this process knows, one that a look-up
// finds, or a new one. A POST is sent only after look-ups that could have seen the result
// of every earlier one; one whose outcome is unknown is repeated then. A machine that came
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
		if c.posts > 0 && (c.posts == maxPosts || !c.hasTimeForPost(ctx)) {
			return nil, c.lost
		}
		if server, err = c.makeOne(ctx, seen); !errors.Is(err, errUnusable) {
			return server, err
		}
		klog.InfoS("The outcome of a create request is unknown, looking for the server", "machine", c.machine, "err", c.lost)
	}
}

// takeOver returns the only server of a machine that came from OpenStack. It makes none and
// deletes none, whatever there is.
func (c *creation) takeOver(ctx context.Context) (*poll, error) {
	server, err := c.existing(ctx)
	if errors.Is(err, errNoneKnown) || errors.Is(err, errGone) || errors.Is(err, errUnusable) || err == nil && server.last.IsDeleting() {
		return nil, newError(codes.FailedPrecondition, fmt.Sprintf(TextNotTakenOver+
			": delete the machine to have it replaced, or name its server by spec.providerID", c.machine))
	}
	return server, err
}

// knowsOfNoServer says that this process knows of no server of the machine, and that no POST
// for one is open, a predecessor's neither.
func (c *creation) knowsOfNoServer() bool {
	entry := c.ledger.Get(c.key)
	return entry.ServerID == "" && !entry.HasOpenPost() && !c.clock.Now().Before(c.noPredecessorBefore)
}

// makeOne sends the POST and reads the server that its answer names. errUnusable says that
// nobody knows whether it made one.
func (c *creation) makeOne(ctx context.Context, seen ledger.Entry) (*poll, error) {
	if err := cmp.Or(c.checkExhausted(), c.checkElsewhere()); err != nil {
		return nil, err
	}
	if !c.ledger.Claim(c.key, c.uid, seen) {
		return nil, newError(codes.Aborted, fmt.Sprintf(TextAnotherCall, c.machine))
	}
	made, err := c.post(ctx)
	if err != nil && !outcomeUnknown(err) {
		return nil, c.ended(err)
	}
	c.begin()
	if err != nil {
		c.lost = err
		return nil, errUnusable
	}
	p := c.poll(made.ID)
	p.due = p.since.Add(firstPoll)
	c.lost = newError(codes.Unavailable, fmt.Sprintf(TextOthersServer+" %s, which is somebody else's", c.machine, made.ID))
	return p, c.confirm(ctx, p)
}

func (c *creation) hasTimeForPost(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !ok || deadline.Sub(c.clock.Now()) >= timeForPost
}

// confirm reads a server until a read shows it. One that the machine's own POST made, and
// that still does not show its labels when its look-ups should, is deleted: the API has
// dropped them, and nobody would ever find it again.
func (c *creation) confirm(ctx context.Context, p *poll) error {
	for byGet := false; ; byGet = true {
		err := p.present(ctx)
		switch {
		case !errors.Is(err, errUnlabelled):
			return err
		case !byGet || c.clock.Now().Before(c.noPostBefore()):
			p.absence.onlyGet = true
			continue
		}
		p.byID = true
		if err := c.deleteServers(ctx, []*removal{{p}}); err != nil {
			return err
		}
		return newError(codes.Internal, fmt.Sprintf("server %s "+TextLabelsDropped+", and is deleted: nobody would find it again", p.id))
	}
}

// adopt reads a server that was found, and notes it as the machine's. errUnusable says that
// this call cannot use it: it is gone, being deleted, or failed (then it is deleted).
func (c *creation) adopt(ctx context.Context, serverID string) (*poll, error) {
	p := c.poll(serverID)
	err := c.confirm(ctx, p)
	switch {
	case errors.Is(err, errGone):
		return nil, errUnusable
	case err != nil:
		return nil, err
	case p.last.IsDeleting():
		return nil, errUnusable
	case p.last.Status == statusError:
		return nil, cmp.Or(c.deleteUnusable(ctx, p), errUnusable)
	}
	c.ledger.Adopt(c.key, c.uid, serverID)
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
		c.noteUnawaited(deleting, false)
		kept, err := c.keepOne(ctx, own)
		if !errors.Is(err, errUnusable) {
			return kept, err
		}
		if search.conclusive(named) {
			return nil, errNone
		}
	}
}

// keepOne adopts the best of the machine's servers that can be used; errUnusable if there is
// none. The others are deleted: the manager's orphan collector leaves them alone while the
// machine is in creation. A list may lag: the one to keep is read first.
func (c *creation) keepOne(ctx context.Context, servers []Server) (*poll, error) {
	slices.SortFunc(servers, func(a, b Server) int { return CompareServers(&a, &b) })
	for i := range servers {
		kept, err := c.adopt(ctx, servers[i].ID)
		if errors.Is(err, errUnusable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		klog.V(2).InfoS("Adopting the machine's server", "machine", c.machine, "server", kept.id, "status", kept.last.Status)
		c.noteUnawaited(servers[i+1:], true)
		return kept, nil
	}
	return nil, errUnusable
}

// noteUnawaited notes servers to delete once the server to use is known: a second one, or
// one whose deletion may be stuck, must not keep a machine from coming up.
func (c *creation) noteUnawaited(servers []Server, second bool) {
	for _, server := range servers {
		if !slices.ContainsFunc(c.unawaited, func(u unawaited) bool { return u.ID == server.ID }) {
			c.unawaited = append(c.unawaited, unawaited{server, second})
		}
	}
}

// deleteUnawaited asks once for the deletion of what was noted, and waits for the answers,
// but not for long. The server to use may have been noted before: a list may be old.
func (c *creation) deleteUnawaited(ctx context.Context, use string) {
	ctx, cancel := context.WithTimeout(ctx, unawaitedTimeout)
	defer cancel()
	var answers sync.WaitGroup
	for _, server := range c.unawaited {
		if server.ID == use {
			continue
		}
		answers.Go(func() {
			_, err := safely(func(ctx context.Context) (struct{}, error) {
				return struct{}{}, c.client.DeleteServer(ctx, server.ID)
			})(ctx)
			if server.second {
				c.meters.duplicate(err)
			}
			klog.InfoS("Asked for the deletion of a server that the machine does not use", "machine", c.machine,
				"server", server.ID, "status", server.Status, "second", server.second, "err", err)
		})
	}
	answers.Wait()
}

// deleteUnusable deletes a server of the machine that is of no use, and waits until it is gone: its
// name and NICs would be in the way of a new one.
func (c *call) deleteUnusable(ctx context.Context, p *poll) error {
	klog.InfoS("Deleting a server that the machine cannot use", "machine", c.machine,
		"server", p.id, "status", p.last.Status, "reason", sanitize(c.hiding().shown(p.last.ErrorMessage)))
	return c.deleteServers(ctx, []*removal{{c.pollOf(p.last)}})
}

// post sends the POST, which the ledger knows of already, and notes how it ended.
func (c *creation) post(ctx context.Context) (*Server, error) {
	c.posts++
	end := c.ledger.OutcomeUnknown // also that of a panic
	defer func() { end(c.key) }()
	server, err := c.send(ctx)
	switch {
	case err == nil:
		end = func(key ledger.Key) { c.ledger.Accepted(key, server.ID) }
		klog.V(2).InfoS("Server created", "machine", c.machine, "server", server.ID)
	case !outcomeUnknown(err):
		end = c.ledger.Refused
		c.noteExhausted(err)
	}
	return server, err
}

// send sends the POST. Only from here to its answer the user data is in memory, and its body.
func (c *creation) send(ctx context.Context) (*Server, error) {
	done, err := c.session.TakeBody(ctx, c.bodyAtMost())
	if err != nil {
		return nil, &APIError{Call: callCreateServer, Err: err}
	}
	defer done()
	return c.client.CreateServer(ctx, c.serverRequest())
}

// failed is the answer where the server did not become ready: err says why. One that is
// in ERROR is deleted, unless it came from OpenStack, and its fault is the answer; one that was
// deleted under us is made again by the manager's next call, not by this one.
func (c *creation) failed(ctx context.Context, p *poll, err error) error {
	switch {
	case !errors.Is(err, errGone) && !errors.Is(err, errUnusable):
		return err
	case errors.Is(err, errGone) || p.last.IsDeleting():
		return newError(codes.Aborted, fmt.Sprintf(TextDeletedUnderUs, c.machine))
	}
	fault := faultyError(p.last, c.hiding())
	if c.fromOpenStack {
		return fault
	}
	c.noteExhausted(fault)
	if err := c.deleteUnusable(ctx, p); err != nil {
		// The answer names the fault, not this error; the next call deletes again.
		klog.ErrorS(err, "Deleting a failed server failed", "machine", c.machine, "server", p.id)
	}
	return fault
}

// awaitReady waits until the server runs, each of its NICs has an address, and those of
// the spec carry the allowedAddresses; it returns the addresses in a stable order.
// errUnusable says that the server is in ERROR or being deleted. A step that fails is
// tried again with the next read, unless the API refuses it.
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
	case server.Status == statusError, server.IsDeleting():
		return nil, errUnusable
	case server.Status != statusActive:
		return nil, nil
	}
	connected, err := p.connect(ctx, p.id)
	if err == nil && connected.complete() {
		return connected.addresses, nil
	}
	p.missing = connected.missing()
	return nil, p.afterStep(ctx, err, p.state())
}

func (c *call) classKey() classKey {
	return classKey{c.key.Endpoint, c.key.ProjectID, c.key.Region, c.class, sha256.Sum256(c.rawSpec)}
}

// noteExhausted remembers the error if it says that something is exhausted.
func (c *call) noteExhausted(err error) {
	if code, _ := classify(err); code == codes.ResourceExhausted {
		c.exhausted.Set(c.classKey(), exhausted{err, c.clock.Now().Add(exhaustedFor)})
	}
}

// checkExhausted returns the error that the class ran out with, if it still holds.
func (c *call) checkExhausted() error {
	if found, ok := c.exhausted.Lookup(c.classKey()); ok && c.clock.Now().Before(found.until) {
		return found.err
	}
	return nil
}
