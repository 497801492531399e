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
	// lookUpPatience is how long look-ups that fail may delay the DELETE of the server that the request names;
	// longPatience is the same where that failed, too. It is longer than lists are put off.
	lookUpPatience, longPatience = 20 * time.Second, time.Minute
	// orphanTimeout bounds the deletion of an orphan: the manager deletes one after the other, and comes back by itself.
	orphanTimeout = 5 * time.Second
)

// deleteAll deletes every server of the Machine: the one that the request names, the one in the record, and those that
// look-ups find, until these prove that there are no others; then what the cloud keeps of a Machine from OpenStack.
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
		if c.isReplaced() { // what is left of its name is the younger Machine's to find
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

// firstLookUp makes the first look-up of a deletion. Where it fails for lookUpPatience, a DELETE is sent for the server
// that the request names before the others are known; its end is awaited with theirs.
func (c *call) firstLookUp(ctx context.Context, look *lookup) (lookedUp, error) {
	if c.serverID == "" {
		return look.next(ctx)
	}
	for patience := lookUpPatience; ; patience = longPatience {
		limited, cancel := context.WithTimeout(ctx, patience)
		found, err := look.next(limited)
		isLate := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !isLate {
			return found, err
		}
		look.state = fmt.Sprintf("other servers of machine %s are looked for", c.machine)
		failed := c.deleteUnfound(ctx)
		if isNotOurs(failed) {
			return found, failed
		}
		if failed == nil {
			return look.next(ctx)
		}
		look.retryAt = c.clock.Now().Add(minPoll)
		klog.InfoS("Neither the server that the machine names nor others can be read, will be tried again",
			"machine", c.machine, "server", c.serverID, "err", failed)
	}
}

// deleteUnfound sends a DELETE for the server that the request names, if a read shows it.
func (c *call) deleteUnfound(ctx context.Context) error {
	t, err := c.deletionByID(ctx, c.serverID)
	switch {
	case err != nil || t == nil:
		return err
	case t.last.server == nil:
		return fmt.Errorf("no read shows server %s", c.serverID)
	default:
		return t.sendDelete(ctx)
	}
}

// deleteFound deletes servers that a look-up has shown, the one that is named ("" for none), and the one in the
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
	// What failed for a server of the Machine may pass sooner than what is wrong with an ID.
	return cmp.Or(c.deleteServers(ctx, deletions), errors.Join(errs...))
}

// deletionOf tracks a server that was just shown, and is to be deleted.
func (c *call) deletionOf(server *Server, byList bool) *tracked {
	t := c.trackShown(server, byList)
	t.removal.isWanted = true
	return t
}

// deletionByID reads a server that is to be deleted; nil if it turns out to be another machine's. A server that this
// read does not show may still be there.
func (c *call) deletionByID(ctx context.Context, id string) (*tracked, error) {
	t := c.track(id)
	t.removal.isWanted = true
	_, err := t.poll(ctx)
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

// deleteServers deletes servers, and waits until all are proved gone. A DELETE is sent for each before it waits, and a
// server that fails does not block the others.
func (c *call) deleteServers(ctx context.Context, deletions []*tracked) error {
	errs := make([]error, len(deletions))
	staying := 0
	for i, t := range deletions {
		if t.last.server == nil { // no DELETE before a read shows it
			continue
		}
		err := t.sendDelete(ctx)
		if t.last.server.IsDeleting() { // the deletion may be stuck: to repeat the DELETE does no harm
			continue
		}
		if staying++; staying > 1 {
			c.meters.duplicate(err)
		}
		errs[i] = t.steps.afterStep(ctx, err, t.state())
	}
	var all sync.WaitGroup
	for i, t := range deletions {
		if errs[i] == nil {
			all.Go(func() {
				defer recovered(&errs[i])
				errs[i] = t.awaitGone(ctx)
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// deleteNamed deletes the server that the request names, and no other.
func (c *call) deleteNamed(ctx context.Context) error {
	t, err := c.deletionByID(ctx, c.serverID)
	if err != nil || t == nil {
		return err
	}
	return c.deleteServers(ctx, []*tracked{t})
}

// deleteOrphan sends one DELETE for a server that the orphan collector names, and does not wait. The server's own name
// must be the Machine's, too, and it must have no OpenStack tag: neither a machine label that was edited by hand nor a
// migration in the wrong order may cost a running server.
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
	if err == nil && !t.removal.isOwed && !server.IsDeleting() {
		c.meters.orphans.Inc()
	}
	return err
}
