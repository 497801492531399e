// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

const (
	// lookupTimeout is how long failing lists may delay the DELETE of the server in the ProviderID.
	lookupTimeout = 20 * time.Second
	// orphanTimeout limits the deletion of an orphan: the manager deletes them one by one, and retries
	// by itself.
	orphanTimeout = 5 * time.Second
)

// deleteAll deletes every server of the Machine: those that a list shows, and the ones in the request
// and the record. It ends once all are gone and the last list began late enough to show every server;
// then come the leftover resources of a Machine from OpenStack.
func (c *call) deleteAll(ctx context.Context) error {
	if err := c.checkNetwork(); err != nil {
		return err
	}
	polls := pollsFrom(c.clock.Now())
	servers, began, err := c.findFirst(ctx)
	for err == nil {
		if err = c.deleteFound(ctx, servers); err != nil || !began.Before(c.certain()) {
			break
		}
		now := c.clock.Now()
		servers, began, err = c.find(ctx, earlier(polls.after(now, now), later(c.certain(), now)))
	}
	if err != nil || !c.fromOpenStack {
		return err
	}
	return c.deleteLeftovers(ctx)
}

// findFirst makes the first list of a deletion. If that fails for lookupTimeout, a DELETE is sent for
// the server in the request, if a GET shows it.
func (c *call) findFirst(ctx context.Context) ([]Server, time.Time, error) {
	if c.serverID == "" {
		return c.find(ctx, time.Time{})
	}
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	servers, began, err := c.find(limited, time.Time{})
	isLate := limited.Err() != nil && ctx.Err() == nil
	cancel()
	if err == nil || !isLate {
		return servers, began, err
	}
	w := c.watch(c.serverID)
	if server, err := w.poll(ctx); err == nil && server != nil {
		err = w.sendDelete(ctx)
		klog.InfoS("Lists of a Machine's servers fail; sent a DELETE for the one in its ProviderID",
			"machine", c.machine, "server", c.serverID, "err", err)
	}
	return c.find(ctx, time.Time{})
}

// watchListed returns the watch of a server that a list has just shown.
func (c *call) watchListed(server *Server) *watch {
	w := c.watch(server.ID)
	w.server, w.byList, w.isListed = server, true, true
	return w
}

// deleteFound deletes the servers of a list, and the ones in the request and the record. A server that
// is not the Machine's, or cannot be read, does not block the others.
func (c *call) deleteFound(ctx context.Context, servers []Server) error {
	if err := c.checkSeveral(servers); err != nil {
		return err
	}
	var watches []*watch
	for i := range servers {
		if c.watch(servers[i].ID).isGone { // the list is old
			continue
		}
		w := c.watchListed(&servers[i])
		w.isSurplus = i > 0 && !w.isDeleting()
		watches = append(watches, w)
	}
	for _, id := range []string{c.serverID, c.record().serverID} {
		if id == "" {
			continue
		}
		if w := c.watch(id); !w.isGone && !slices.Contains(watches, w) {
			watches = append(watches, w)
		}
	}
	return c.deleteServers(ctx, watches)
}

// deleteServers deletes servers, and waits until all are gone. The next step is always that of the
// server whose turn comes first, so that none waits for another.
func (c *call) deleteServers(ctx context.Context, watches []*watch) error {
	var errs []error
	for len(watches) > 0 {
		w := slices.MinFunc(watches, func(a, b *watch) int { return a.due.Compare(b.due) })
		isGone, err := w.stepToGone(ctx)
		if err != nil { // the last one comes first: another's label is found at once, but does not pass
			errs = slices.Insert(errs, 0, err)
		}
		if err != nil || isGone {
			watches = slices.DeleteFunc(watches, func(other *watch) bool { return other == w })
		}
	}
	return errors.Join(errs...)
}

// deleteNamed deletes only the server in the request's ProviderID.
func (c *call) deleteNamed(ctx context.Context) error {
	return c.deleteServers(ctx, []*watch{c.watch(c.serverID)})
}

// deleteOrphan sends one DELETE for the server named by the orphan collector, and does not wait.
// The server's own name must be the Machine's, too, and it must have no OpenStack tag: neither a
// manually edited machine label nor a migration in the wrong order may cost a running server.
func (c *call) deleteOrphan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	w := c.watch(c.serverID)
	server, err := w.poll(ctx)
	err = cmp.Or(err, w.reads.last) // there is no time for another read
	if err == nil && server != nil && server.Name != c.machine {
		err = notOurs(server, StackitMachineLabel, server.Name)
	}
	if err == nil && server != nil {
		err = checkTag(server)
	}
	if isNotOurs(err) {
		c.meters.orphans.WithLabelValues(deletionRefused).Inc()
	}
	if err != nil || server == nil {
		return err
	}
	err = w.sendDelete(ctx)
	if err == nil && !w.firstAccepted.IsZero() {
		c.meters.orphans.WithLabelValues(deletionAccepted).Inc()
	}
	return err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
