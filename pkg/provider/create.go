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
)

// creation is one CreateMachine.
type creation struct {
	*call
	exhausted *exhaustion
	boots     *boots
	// settle is how long a request may take until it shows.
	settle time.Duration
	// predecessors tells when a look-up must begin to see what others asked for.
	predecessors func() time.Time
	// urged are the servers whose deletion was asked for again.
	urged map[string]bool
	// rawSpec is the providerSpec as it was given.
	rawSpec string
}

// ensureServer returns the machine's server: the one this process knows, one that
// a look-up finds, or a new one. A server is only asked for after a look-up that
// could have seen the result of every earlier request.
func (c *creation) ensureServer(ctx context.Context) (*Server, error) {
	if known := c.ledger.get(c.key).serverID; known != "" {
		server, err := c.knownServer(ctx, known)
		if !errors.Is(err, errGone) {
			return server, err
		}
	}
	seen := c.ledger.get(c.key)
	if server, err := c.lookUp(ctx, seen); server != nil || err != nil {
		return server, err
	}
	if err := c.exhausted.check(c.classKey(), c.rawSpec); err != nil {
		return nil, err
	}
	if !c.ledger.claim(c.key, seen) {
		return nil, newError(codes.Aborted, fmt.Sprintf("another call is creating the server of machine %s", c.machine))
	}
	return c.post(ctx)
}

// knownServer reads the machine's server; errGone if it is not to be had (any
// more): then the ledger forgets it.
func (c *creation) knownServer(ctx context.Context, serverID string) (*Server, error) {
	server, err := c.inventory.read(ctx, serverID, nil, c.soon)
	if err == nil {
		err = c.checkOwned(server, false)
	}
	if err != nil && !errors.Is(err, errGone) {
		return nil, err
	}
	if err == nil && !server.leaving() && server.Status != statusError {
		c.adopt(serverID)
		return server, nil
	}
	if err == nil && server.Status == statusError {
		if err := c.discard(ctx, []Server{*server}); err != nil {
			return nil, err
		}
	}
	c.ledger.update(c.key, (*entry).lose)
	return nil, errGone
}

// lookUp finds the machine's server by name, and goes on looking until every
// request that may have been sent would show. It returns nil if there is none.
func (c *creation) lookUp(ctx context.Context, known entry) (*Server, error) {
	start := c.inventory.clock.Now()
	if start.Sub(known.absent) < freshRead && !known.absent.Before(known.certainFrom(c.settle, c.predecessors())) {
		return nil, nil
	}
	for soon := c.soon; ; soon = c.inventory.nextTick(start) {
		named := c.namedServers(ctx, soon)
		own, leaving := withoutLeaving(named.value)
		c.urge(ctx, leaving)
		// Asked after the calls: this process may have stood still in the middle of them.
		certain := known.certainFrom(c.settle, c.predecessors())
		switch {
		case ctx.Err() != nil:
			return nil, lateError(ctx.Err(), noServerYet(c.machine))
		case named.err != nil:
			return nil, named.err
		case len(own) == 0 && !named.began.Before(certain):
			return nil, nil
		case len(own) > 0:
			kept, err := c.keepOne(ctx, own)
			if !errors.Is(err, errGone) {
				return kept, err
			}
			// Another look must tell what is there.
		}
	}
}

// urge asks once more for the deletion of servers that are being deleted: one that
// is stuck would stay, and cost, for as long as the machine lives. Nobody waits for
// them: they are no obstacle.
func (c *creation) urge(ctx context.Context, leaving []Server) {
	for i := range leaving {
		if c.urged[leaving[i].ID] {
			continue
		}
		c.urged[leaving[i].ID] = true
		if err := c.requestDeletion(ctx, leaving[i].ID); err != nil {
			klog.V(2).InfoS("Asking again for the deletion of a server failed", "machine", c.machine, "server", leaving[i].ID, "err", err)
		}
	}
}

// keepOne keeps one of the machine's servers and deletes the others, which the
// manager's orphan collector leaves alone while the machine is in creation. A list
// may lag: the one to keep is read, and errGone if it is not worth keeping.
func (c *creation) keepOne(ctx context.Context, servers []Server) (*Server, error) {
	slices.SortFunc(servers, func(a, b Server) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	if rest := servers[1:]; len(rest) > 0 {
		if err := c.discard(ctx, rest); err != nil {
			return nil, err
		}
	}
	kept, err := c.knownServer(ctx, servers[0].ID)
	if err == nil {
		klog.V(2).InfoS("Adopting the machine's server", "machine", c.machine, "server", kept.ID, "status", kept.Status)
	}
	return kept, err
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

// discard deletes servers of the machine that are of no use, and waits until they
// are gone: their names and NICs would be in the way of a new one.
func (c *call) discard(ctx context.Context, servers []Server) error {
	for i := range servers {
		if err := c.checkOwned(&servers[i], false); err != nil {
			return err
		}
		klog.InfoS("Deleting a server that the machine cannot use", "machine", c.machine,
			"server", servers[i].ID, "status", servers[i].Status, "reason", neutral(servers[i].ErrorMessage))
	}
	return c.deleteServers(ctx, servers)
}

// post asks for the server; the ledger knows already that it does.
func (c *creation) post(ctx context.Context) (*Server, error) {
	defer c.ledger.update(c.key, func(e *entry) {
		if e.posting { // a panic: nobody knows what became of it
			e.posting, e.posted = false, c.inventory.clock.Now()
		}
	})
	server, err := c.client.CreateServer(ctx, &ServerRequest{Name: c.machine, Labels: c.serverLabels(c.spec.Labels), Spec: c.spec})
	switch {
	case err == nil:
		klog.V(2).InfoS("Server created", "machine", c.machine, "server", server.ID)
		c.ledger.update(c.key, func(e *entry) {
			e.lose()
			// The request may have been sent long after it was claimed.
			e.serverID, e.posting, e.posted = server.ID, false, c.inventory.clock.Now()
			e.made = e.posted
		})
		return server, nil
	case !outcomeUnknown(err):
		c.ledger.update(c.key, func(e *entry) { e.posting, e.posted = false, time.Time{} })
		c.exhausted.note(c.classKey(), c.rawSpec, err)
		return nil, err
	}
	c.ledger.update(c.key, func(e *entry) { e.posting, e.posted = false, c.inventory.clock.Now() })
	klog.InfoS("The request for a server was not answered, looking for its result", "machine", c.machine, "err", err)
	found, lookUpErr := c.lookUp(ctx, c.ledger.get(c.key))
	switch {
	case found != nil:
		return found, nil
	case isRefused(lookUpErr):
		return nil, interruptedError(lookUpErr)
	default:
		return nil, errors.Join(err, lookUpErr)
	}
}

// awaitActive waits until the server runs.
func (c *creation) awaitActive(ctx context.Context, server *Server) error {
	if server.Status == statusActive {
		return nil
	}
	made := c.ledger.get(c.key).made
	looks := 0
	quiet := func() lull { return c.boots.lull(c.classKey(), made) }
	server, err := c.inventory.await(ctx, server.ID, nil, quiet, func(server *Server) bool {
		if server.Status == statusActive || server.Status == statusError || server.leaving() {
			return true
		}
		if looks++; looks == 1 {
			c.readNICsEarly(ctx, server.ID)
		}
		return false
	})
	if err == nil && server.Status == statusActive {
		c.boots.note(c.classKey(), made, server)
	}
	return c.verdict(ctx, server, err)
}

// earlyPatience is how long the first look at a server's NICs may keep the driver
// from looking at the server.
const earlyPatience = 2 * time.Second

// readNICsEarly reads the NICs while the server boots: most have their addresses
// then (OpenStack gives a port all of them at once), and nothing is left to wait for
// once it runs. If it fails, or takes long, awaitAddresses has to do it; what is wrong
// with the credentials the next look at the server tells.
func (c *creation) readNICsEarly(ctx context.Context, serverID string) {
	if len(c.knownAddresses(serverID)) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, earlyPatience)
	defer cancel()
	nics, err := c.readNICs(ctx, serverID, c.soon)
	if err != nil {
		klog.V(2).InfoS("Reading the NICs of a new server failed, will be tried again", "server", serverID, "err", err)
		return
	}
	c.noteNICs(nics)
}

// awaitAddresses waits until the server has its NICs and each of them an address,
// and returns all addresses in a stable order.
func (c *creation) awaitAddresses(ctx context.Context, serverID string) ([]corev1.NodeAddress, error) {
	if known := c.knownAddresses(serverID); len(known) > 0 {
		return known, nil
	}
	start := c.inventory.clock.Now()
	for soon := c.soon; ; soon = c.inventory.nextTick(start) {
		nics, err := c.readNICs(ctx, serverID, soon)
		switch {
		case err == nil && c.noteNICs(nics):
			return c.knownAddresses(serverID), nil
		case isRefused(err):
			return nil, interruptedError(err)
		case ctx.Err() != nil:
			return nil, lateError(ctx.Err(), fmt.Sprintf("server %s is ACTIVE, but not all of its NICs have an address", serverID))
		}
		// The server itself may be the reason.
		server, err := c.inventory.read(ctx, serverID, nil, c.soon)
		if err != nil && !errors.Is(err, errGone) {
			klog.V(2).InfoS("Reading a server failed, will be tried again", "server", serverID, "err", err)
			continue
		}
		if err := c.verdict(ctx, server, err); err != nil {
			return nil, err
		}
	}
}

// verdict judges what became of a server that was waited for, or the error of the
// wait; nil if there is nothing wrong. One that failed is deleted, and its fault is
// the answer; one that was deleted under us is made again by the manager's next
// call, not by this one.
func (c *creation) verdict(ctx context.Context, server *Server, err error) error {
	switch {
	case errors.Is(err, errGone) || (err == nil && server.leaving()):
		c.ledger.update(c.key, (*entry).lose)
		return newError(codes.Aborted, fmt.Sprintf("the server of machine %s was deleted while it was being created", c.machine))
	case err != nil:
		return err
	case server.Status != statusError:
		return nil
	}
	fault := faultyError(server)
	c.exhausted.note(c.classKey(), c.rawSpec, fault)
	if err := c.discard(ctx, []Server{*server}); err != nil {
		// The fault is what the user has to know; the next call tries again.
		klog.ErrorS(err, "Deleting a failed server failed", "machine", c.machine, "server", server.ID)
		return fault
	}
	c.ledger.update(c.key, (*entry).lose)
	return fault
}
