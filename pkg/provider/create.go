// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// creation is one CreateMachine.
type creation struct {
	*call
	// posts is how many POSTs were sent, lost the error of the last one whose outcome is
	// unknown.
	posts int
	lost  error
	// waited says that the call has begun to wait: a failed look-up, or refused
	// credentials, are then no answer any more.
	waited bool
	// retried says that stuck deletions were asked for again.
	retried bool
}

// ensureServer is findOrMake; refused credentials that end a wait are Unavailable, so that
// the manager comes back with the Secret as it is then.
func (c *creation) ensureServer(ctx context.Context) (*poll, error) {
	server, err := c.findOrMake(ctx)
	if err == nil || !c.waited {
		return server, err
	}
	if code, _ := classify(err); code == codes.Unauthenticated {
		err = interruptedError(err)
	}
	return nil, err
}

// findOrMake returns the machine's server: the one this process knows, one that a look-up
// finds, or a new one. A POST is sent only after a look-up that could have seen the result
// of every earlier one; one whose outcome is unknown is repeated then.
func (c *creation) findOrMake(ctx context.Context) (*poll, error) {
	if known := c.ledger.Get(c.key).ServerID; known != "" {
		server, err := c.adopt(ctx, known)
		if !errors.Is(err, errNoServer) {
			return server, err
		}
	}
	for {
		seen := c.ledger.Get(c.key)
		server, err := c.lookUp(ctx)
		if !errors.Is(err, errNoServer) {
			return server, err
		}
		if c.posts > 0 && (c.posts == maxPosts || !c.hasTimeForPost(ctx)) {
			return nil, c.lost
		}
		if err := c.checkExhausted(); err != nil {
			return nil, err
		}
		if !c.ledger.Claim(c.key, seen) {
			return nil, newError(codes.Aborted, fmt.Sprintf(TextAnotherCall, c.machine))
		}
		made, err := c.post(ctx)
		switch {
		case err == nil:
			p := c.poll(made.ID)
			p.last, p.due = made, p.since.Add(firstPoll)
			return p, nil
		case !outcomeUnknown(err):
			return nil, err
		}
		klog.InfoS("The outcome of a create request is unknown, looking for the server", "machine", c.machine, "err", err)
		c.lost, c.waited = err, true
	}
}

func (c *creation) hasTimeForPost(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !ok || deadline.Sub(c.clock.Now()) >= timeForPost
}

// adopt reads a server that was found, checks that it is ours, and notes it as the
// machine's. errNoServer says that this call cannot use it: it is gone, being deleted, or
// failed (then it is deleted).
func (c *creation) adopt(ctx context.Context, serverID string) (*poll, error) {
	p, err := c.present(ctx, serverID)
	if errors.Is(err, errGone) {
		return nil, errNoServer
	}
	if err == nil {
		err = c.checkOwned(p.last, false)
	}
	switch {
	case err != nil:
		return nil, err
	case p.last.IsDeleting():
		return nil, errNoServer
	case p.last.Status == statusError:
		c.waited = true
		return nil, cmp.Or(c.discard(ctx, []Server{*p.last}), errNoServer)
	}
	c.ledger.Adopt(c.key, serverID)
	return p, nil
}

// lookUp finds the machine's server by name; errNoServer says that surely none can be used.
func (c *creation) lookUp(ctx context.Context) (*poll, error) {
	for search := c.search(c.findNamed, c.waited); ; {
		named, err := search.next(ctx)
		if err != nil {
			return nil, err
		}
		own, deleting := withoutDeleting(named.servers)
		c.retryStuckDeletions(ctx, deleting)
		if len(own) > 0 {
			kept, err := c.keepOne(ctx, own)
			if !errors.Is(err, errNoServer) {
				return kept, err
			}
		}
		if search.conclusive(named) {
			return nil, errNoServer
		}
		c.waited = true
	}
}

// retryStuckDeletions asks once more for the deletion of servers that are being deleted:
// one that is stuck would stay, and cost, for as long as the machine lives. Nobody waits
// for them: they are no obstacle. Once a call is enough.
func (c *creation) retryStuckDeletions(ctx context.Context, deleting []Server) {
	if c.retried {
		return
	}
	c.retried = true
	for i := range deleting {
		if err := c.client.DeleteServer(ctx, deleting[i].ID); err != nil {
			klog.V(2).InfoS("Asking again for the deletion of a server failed", "machine", c.machine, "server", deleting[i].ID, "err", err)
		}
	}
}

// keepOne keeps the best of the machine's servers that can be used, and asks for the
// deletion of the others, which the manager's orphan collector leaves alone while the
// machine is in creation. Nobody waits for that: a duplicate that cannot be deleted must
// not keep a machine from coming up. A list may lag: the one to keep is read first.
func (c *creation) keepOne(ctx context.Context, servers []Server) (*poll, error) {
	slices.SortFunc(servers, func(a, b Server) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	for i := range servers {
		kept, err := c.adopt(ctx, servers[i].ID)
		if errors.Is(err, errNoServer) {
			continue
		}
		if err != nil {
			return nil, err
		}
		klog.V(2).InfoS("Adopting the machine's server", "machine", c.machine, "server", kept.id, "status", kept.last.Status)
		for _, other := range servers[i+1:] {
			err := c.client.DeleteServer(ctx, other.ID)
			c.meters.duplicate(err)
			klog.InfoS("Deleting a second server of a machine", "machine", c.machine, "server", other.ID, "status", other.Status, "err", err)
		}
		return kept, nil
	}
	return nil, errNoServer
}

// rank of a server among several: the one that runs first, ERROR last.
func rank(server *Server) int {
	switch server.Status {
	case statusActive:
		return 0
	case statusError:
		return 2
	default:
		return 1
	}
}

// discard deletes servers of the machine that are of no use, and waits until they are
// gone: their names and NICs would be in the way of a new one.
func (c *call) discard(ctx context.Context, servers []Server) error {
	for i := range servers {
		if err := c.checkOwned(&servers[i], false); err != nil {
			return err
		}
		klog.InfoS("Deleting a server that the machine cannot use", "machine", c.machine,
			"server", servers[i].ID, "status", servers[i].Status, "reason", sanitize(servers[i].ErrorMessage))
	}
	return c.deleteServers(ctx, servers)
}

// post sends the POST, which the ledger knows of already, and notes how it ended.
func (c *creation) post(ctx context.Context) (*Server, error) {
	c.posts++
	end := c.ledger.OutcomeUnknown // also that of a panic
	defer func() { end(c.key) }()
	server, err := c.client.CreateServer(ctx, &ServerRequest{Name: c.machine, Labels: c.serverLabels(c.spec.Labels), Spec: c.spec})
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

// failed is the answer where the server did not become ready: err says why. One that is
// in ERROR is deleted, and its fault is the answer; one that was deleted under us is made
// again by the manager's next call, not by this one.
func (c *creation) failed(ctx context.Context, p *poll, err error) error {
	switch {
	case !errors.Is(err, errGone) && !errors.Is(err, errNoServer):
		return err
	case errors.Is(err, errGone) || p.last.IsDeleting():
		return newError(codes.Aborted, fmt.Sprintf(TextDeletedUnderUs, c.machine))
	}
	fault := faultyError(p.last)
	c.noteExhausted(fault)
	if err := c.discard(ctx, []Server{*p.last}); err != nil {
		// The answer names the fault, not this error; the next call deletes again.
		klog.ErrorS(err, "Deleting a failed server failed", "machine", c.machine, "server", p.id)
	}
	return fault
}

// awaitReady waits until the server runs, each of its NICs has an address, and those of
// the spec carry the allowedAddresses; it returns the addresses in a stable order.
// errNoServer says that the server is in ERROR or being deleted. A step that fails is
// tried again with the next read, unless the API refuses it.
func (p *poll) awaitReady(ctx context.Context) ([]corev1.NodeAddress, error) {
	for server := p.last; ; {
		if server != nil {
			addresses, err := p.makeReady(ctx, server)
			if err != nil || addresses != nil {
				return addresses, err
			}
		}
		seen, err := p.next(ctx)
		if err := endsWait(ctx, err, p.state()); err != nil {
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
		return nil, errNoServer
	case server.Status != statusActive:
		return nil, nil
	}
	connected, err := p.connect(ctx, p.id)
	if err == nil && connected.complete() {
		return connected.addresses, nil
	}
	p.missing = connected.missing()
	if isDefinite(err) {
		return nil, err
	}
	return nil, endsWait(ctx, err, p.state())
}

// isDefinite says that trying again would fail again: the API refuses the call, or does
// something else than it says.
func isDefinite(err error) bool {
	if err == nil {
		return false
	}
	code, _ := classify(err)
	return code == codes.InvalidArgument || code == codes.PermissionDenied || code == codes.Internal
}
