// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
)

// deleteMachine deletes every server of the machine, and repeats the look-up until
// no POST can be unseen; or it deletes only the server that the request names,
// which is all that may be touched where the cluster is unknown.
func (c *call) deleteMachine(ctx context.Context, onlyNamed bool) error {
	if onlyNamed || c.clusterUnknown && c.serverID != "" {
		server, err := c.ownServer(ctx, c.serverID, true)
		if err != nil {
			return err
		}
		err = c.deleteServers(ctx, server)
		if staying, _ := withoutDeleting(server); onlyNamed && err == nil && len(staying) > 0 {
			c.meters.orphans.Inc()
		}
		return err
	}
	named := []string{c.serverID} // read once, whatever was proved before this call
	toDelete := func(ctx context.Context, notBefore time.Time) (observation, error) {
		found, err := c.serversToDelete(ctx, notBefore, named...)
		if err == nil {
			named = nil
		}
		return found, err
	}
	for search := c.search(toDelete, false); ; {
		found, err := search.next(ctx)
		if err != nil {
			return err
		}
		if err := c.deleteServers(ctx, found.servers); err != nil {
			return err
		}
		if search.conclusive(found) {
			return nil
		}
	}
}

// serversToDelete are the machine's servers by name, those with the IDs, and the one that
// this process knows; each is checked to be the machine's. Servers that are being deleted
// are among them: they are waited for.
func (c *call) serversToDelete(ctx context.Context, notBefore time.Time, ids ...string) (observation, error) {
	found, err := c.findNamed(ctx, notBefore) // as a rule it finds them all
	if err != nil {
		return observation{}, err
	}
	if known := c.ledger.Get(c.key).ServerID; !slices.Contains(ids, known) {
		ids = append(ids, known)
	}
	for _, id := range ids {
		if id == "" || slices.ContainsFunc(found.servers, func(s Server) bool { return s.ID == id }) {
			continue
		}
		server, err := c.ownServer(ctx, id, id == c.serverID)
		if err != nil {
			return observation{}, err
		}
		found.servers = append(found.servers, server...)
	}
	return found, nil
}

// ownServer reads a server and checks that it is the machine's; none if it is gone. byID
// says that the request names it.
func (c *call) ownServer(ctx context.Context, serverID string, byID bool) ([]Server, error) {
	p, err := c.present(ctx, serverID)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []Server{*p.last}, c.checkOwned(p.last, byID)
}

// deleteServers deletes the servers, which were checked to be the machine's, and waits
// until all are proved gone. Each is asked to go before any is waited for, and one that
// fails keeps no other.
func (c *call) deleteServers(ctx context.Context, servers []Server) error {
	var errs []error
	var removals []*removal
	staying := 0
	for i := range servers {
		r := c.newRemoval(&servers[i])
		err := r.sendDelete(ctx)
		if servers[i].IsDeleting() { // it may be stuck: asking again does no harm
			removals = append(removals, r)
			continue
		}
		if staying++; staying > 1 {
			c.meters.duplicate(err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removals = append(removals, r)
	}
	for _, r := range removals {
		errs = append(errs, r.awaitGone(ctx))
	}
	return errors.Join(errs...)
}

// removal is the deletion of one server.
type removal struct {
	*poll
	// notAccepted says that the last DELETE was answered 404.
	notAccepted bool
	// before is the server's state before the last DELETE.
	before string
	// requests counts the DELETEs that were accepted.
	requests int
	// wasDeleting says that the server was seen being deleted.
	wasDeleting bool
}

func (c *call) newRemoval(server *Server) *removal {
	r := &removal{poll: c.poll(server.ID), before: server.Status, wasDeleting: server.IsDeleting()}
	r.last, r.due = server, r.since.Add(leastPoll)
	return r
}

// sendDelete asks the API for the deletion. A DELETE that is answered 404 was not accepted,
// and is no proof.
func (r *removal) sendDelete(ctx context.Context) error {
	err := r.client.DeleteServer(ctx, r.id)
	r.notAccepted = isServerNotFound(err)
	switch {
	case r.notAccepted:
		return nil
	case err != nil:
		return err
	}
	klog.V(2).InfoS("Server deletion requested", "machine", r.machine, "server", r.id)
	r.requests++
	r.absence.deleted = r.clock.Now()
	return nil
}

// awaitGone waits until the server is proved gone, and returns nil only then. A deletion
// that fails on the way is asked for once more; one that was not accepted, with each read.
// (When it counts as failed: deletionPatience in servers.go. HTTP retries:
// pkg/spi/retry.go.)
func (r *removal) awaitGone(ctx context.Context) error {
	for {
		seen, err := r.next(ctx)
		switch err := endsWait(ctx, err, r.state()); {
		case errors.Is(err, errGone):
			return nil
		case err != nil:
			return err
		}
		server := seen.server()
		switch {
		case r.notAccepted:
			err = endsWait(ctx, r.sendDelete(ctx), r.state())
		case server == nil || !r.stuck(server):
			err = nil
		case seen.listed: // it may be old
			err, r.doubted, r.due = nil, true, time.Time{}
		case r.requests > 1:
			err = newError(codes.Aborted, fmt.Sprintf(TextTwoDeletes+", but it is %s, will be tried again: %s",
				r.id, server.Status, server.reason()))
		default:
			r.before, r.wasDeleting = server.Status, false
			err = r.sendDelete(ctx)
			if isRefused(err) {
				err = interruptedError(err)
			}
		}
		if err != nil {
			return err
		}
	}
}

// stuck says whether the deletion has failed: the server is in ERROR, or is not being
// deleted yet when the patience is over.
func (r *removal) stuck(server *Server) bool {
	if server.IsDeleting() {
		r.wasDeleting = true
		return false
	}
	failed := server.Status == statusError && (r.before != statusError || r.wasDeleting)
	return failed || r.clock.Since(r.absence.deleted) > deletionPatience
}
