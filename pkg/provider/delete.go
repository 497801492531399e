// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// lookupTimeout is how long failing look-ups may delay the DELETE of the server in the request;
	// longLookupTimeout is the same after that DELETE failed, too. It is longer than two backoffs of
	// lists: only every second attempt is a list for all callers, the others are reads of a single one.
	lookupTimeout, longLookupTimeout = 20 * time.Second, 75 * time.Second
	// orphanTimeout limits the deletion of an orphan: the manager deletes them one by one, and retries
	// by itself.
	orphanTimeout = 5 * time.Second
)

// deleteAll deletes every server of the Machine: from the request, from the record, and from
// look-ups, until these prove that there are no others; then the leftover resources of a Machine
// from OpenStack.
func (c *call) deleteAll(ctx context.Context) error {
	if err := c.checkNetwork(); err != nil {
		return err
	}
	named := c.serverID // read once, whatever was proved before this call
	look := c.lookup()
	found, err := c.firstLookUp(ctx, look)
	for ; ; named = "" {
		if err != nil {
			return err
		}
		if found, err = c.confirmSingle(ctx, look, found); err != nil {
			return err
		}
		if err := c.deleteFound(ctx, found.servers, named); err != nil {
			return err
		}
		if c.isReplaced() { // the younger Machine handles other servers of its name
			return nil
		}
		if look.isSure(found) {
			break
		}
		found, err = look.next(ctx)
	}
	if !c.fromOpenStack {
		return nil
	}
	return (&leftovers{call: c}).delete(ctx)
}

// firstLookUp makes the first look-up of a deletion. If it fails for lookupTimeout, a DELETE is
// sent for the server in the request before the others are known; its end is awaited with theirs.
func (c *call) firstLookUp(ctx context.Context, look *lookup) (lookupResult, error) {
	if c.serverID == "" {
		return look.next(ctx)
	}
	for timeout := lookupTimeout; ; timeout = longLookupTimeout {
		limited, cancel := context.WithTimeout(ctx, timeout)
		found, err := look.next(limited)
		isLate := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !isLate {
			return found, err
		}
		look.state = fmt.Sprintf("still looking for other servers of machine %s", c.machine)
		failed := c.deleteUnfound(ctx)
		if failed == nil {
			return look.next(ctx)
		}
		if !errors.Is(failed, errNotShown) { // a refusal counts with those of lists
			if err := look.reads.afterRead(ctx, failed, look.state); err != nil {
				return found, err
			}
		}
		look.retryAt = c.clock.Now().Add(minPoll)
		klog.InfoS("Look-up of a Machine's servers timed out, and deleting the one in its ProviderID failed; retrying",
			"machine", c.machine, "server", c.serverID, "err", failed)
	}
}

// errNotShown means that a read did not show the server, or was refused after an accepted DELETE.
var errNotShown = errors.New("no read shows it")

// deleteUnfound sends a DELETE for the server in the request, if a read shows it.
func (c *call) deleteUnfound(ctx context.Context) error {
	t, err := c.deletionByID(ctx, c.serverID)
	switch {
	case err != nil || t == nil:
		return err
	case t.last.server == nil:
		return cmp.Or(t.reads.lastError, errNotShown)
	default:
		return t.sendDelete(ctx)
	}
}

// deleteFound deletes the servers of a look-up, the named one ("" for none), and the one in the
// record. A server that is not the Machine's, or cannot be read, does not block the others.
func (c *call) deleteFound(ctx context.Context, shown []Server, named string) error {
	var deletions []*tracked
	for i := range shown {
		deletions = append(deletions, c.deletionOf(&shown[i], true))
	}
	var errs []error
	for _, id := range []string{named, c.record().serverID} {
		if id == "" || slices.ContainsFunc(deletions, func(t *tracked) bool { return t.id == id }) {
			continue
		}
		t, err := c.deletionByID(ctx, id)
		if err != nil {
			errs = append(errs, err)
		} else if t != nil {
			deletions = append(deletions, t)
		}
	}
	// A failure of the Machine's server may pass sooner than a wrong ID.
	return cmp.Or(c.deleteServers(ctx, deletions), errors.Join(errs...))
}

// deletionOf tracks a server that was just shown and must be deleted.
func (c *call) deletionOf(server *Server, byList bool) *tracked {
	t := c.trackShown(server, byList)
	t.removal.isWanted = true
	return t
}

// deletionByID reads a server that must be deleted; nil if it is another machine's. A server that
// this read does not show may still exist. If it fails, another is made: while lists and GETs fail, they take turns.
func (c *call) deletionByID(ctx context.Context, id string) (*tracked, error) {
	t := c.track(id)
	t.removal.isWanted = true
	_, err := t.poll(ctx)
	if err == nil && t.reads.lastError != nil {
		_, err = t.poll(ctx)
	}
	switch {
	case errors.Is(err, errUnlabelled) && c.clock.Now().Before(c.certain()):
		return nil, nil // the next look-up comes after that
	case errors.Is(err, errUnlabelled):
		return nil, c.labelsMissing(t.last.server)
	case errors.Is(err, errUnusable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return t, nil
}

// deleteServers deletes servers, and waits until all are proved gone. A DELETE is sent for each before
// it waits, and one that fails is repeated without blocking the others.
func (c *call) deleteServers(ctx context.Context, deletions []*tracked) error {
	errs := make([]error, len(deletions))
	staying := 0
	for _, t := range deletions {
		if t.last.server == nil { // no DELETE before a read shows it
			continue
		}
		err := t.sendDelete(ctx)
		if t.last.server.IsDeleting() { // the deletion may be stuck: repeating the DELETE is harmless
			continue
		}
		if staying++; staying > 1 {
			c.meters.duplicate(err)
		}
		if err = t.steps.afterStep(ctx, err, t.state()); err != nil { // no other would succeed, either
			return err
		}
	}
	var all sync.WaitGroup
	for i, t := range deletions {
		all.Go(func() {
			defer recovered(&errs[i])
			errs[i] = t.awaitGone(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// deleteNamed deletes only the server in the request's ProviderID.
func (c *call) deleteNamed(ctx context.Context) error {
	t, err := c.deletionByID(ctx, c.serverID)
	if err != nil || t == nil {
		return err
	}
	return c.deleteServers(ctx, []*tracked{t})
}

// deleteOrphan sends one DELETE for the server named by the orphan collector, and does not wait.
// The server's own name must be the Machine's, too, and it must have no OpenStack tag: neither a
// manually edited machine label nor a migration in the wrong order may cost a running server.
func (c *call) deleteOrphan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	t := c.track(c.serverID)
	t.getOnly = true
	server, err := t.poll(ctx)
	err = cmp.Or(err, t.reads.lastError) // there is no time for another read
	if err == nil && server != nil && server.Name != c.machine {
		err = notOurs(server, StackitMachineLabel, server.Name)
	}
	if err == nil && server != nil {
		err = checkTag(server)
	}
	if isNotOurs(err) {
		c.meters.orphanRefusals.Inc()
	}
	if err != nil || server == nil {
		return err
	}
	err = t.sendDelete(ctx)
	if err == nil && !t.removal.accepted.IsZero() && !server.IsDeleting() {
		c.meters.orphans.Inc()
	}
	return err
}
