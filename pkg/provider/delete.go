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

// deleteAll deletes every server of the machine: the one that the request names, the one
// that this process knows, and those that look-ups find, until these prove that there are no
// others; then what the cloud keeps of a machine that came from OpenStack. Where the cluster
// is unknown only the server that the request names may be touched; of a machine that came from OpenStack
// not even that: its NIC and volume would stay.
func (c *call) deleteAll(ctx context.Context) error {
	if err := c.checkNetwork(); err != nil {
		return err
	}
	if c.clusterUnknown && c.fromOpenStack {
		return c.clusterUnknownError()
	}
	if c.clusterUnknown && c.serverID != "" {
		return c.deleteNamed(ctx)
	}
	named := c.serverID // read once, whatever was proved before this call
	search := c.search()
	found, err := c.firstLookUp(ctx, search)
	for ; ; named = "" {
		if err != nil {
			return err
		}
		if found, err = c.confirmSingle(ctx, search, found); err != nil {
			return err
		}
		if err := c.deleteFound(ctx, found.servers, named); err != nil {
			return err
		}
		if c.isReplaced() { // what is left of its name is the younger Machine's to find
			return nil
		}
		if search.conclusive(found) {
			break
		}
		found, err = search.next(ctx)
	}
	if err := c.checkElsewhere(); err != nil || !c.fromOpenStack {
		return err
	}
	return (&leftovers{call: c}).delete(ctx)
}

// lookUpPatience is for how long the first look-up of a deletion may keep the server that the
// request names from its DELETE.
const lookUpPatience = 20 * time.Second

// firstLookUp is the first look-up of a deletion. Where it does not succeed, the deletion of the
// server that the request names is asked for before the others are known. It is waited for with
// theirs.
func (c *call) firstLookUp(ctx context.Context, search *search) (lookUp, error) {
	if c.serverID == "" {
		return search.next(ctx)
	}
	for {
		limited, cancel := context.WithTimeout(ctx, lookUpPatience)
		found, err := search.next(limited)
		isLate := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !isLate && (search.begun.Load() || isRefused(err)) {
			return found, err
		}
		search.state = fmt.Sprintf("other servers of machine %s are looked for", c.machine)
		failed := c.askToGo(ctx)
		if isForbidden(err) && isForbidden(failed) { // as with an account that has no role
			return found, err
		}
		c.begin()
		if failed == nil {
			return search.next(ctx)
		}
		search.retryAt = c.clock.Now().Add(leastPoll)
		klog.InfoS("Neither the server that the machine names nor others can be read, will be tried again",
			"machine", c.machine, "server", c.serverID, "err", failed)
	}
}

// askToGo asks for the deletion of the server that the request names, if a read shows it.
func (c *call) askToGo(ctx context.Context) error {
	p, err := c.deletionByID(ctx, c.serverID)
	switch {
	case err != nil || p == nil:
		return err
	case p.last == nil:
		return fmt.Errorf("no read shows server %s", c.serverID)
	default:
		return p.sendDelete(ctx)
	}
}

// deleteFound deletes servers that a look-up has shown, the one that is named ("" for none),
// and the one that this process knows. One that is not the machine's, or cannot be read, keeps
// no other.
func (c *call) deleteFound(ctx context.Context, shown []Server, named string) error {
	var deletions []*poll
	for i := range shown {
		deletions = append(deletions, c.deletionOf(&shown[i]))
	}
	var errs []error
	for _, id := range []string{named, c.ledger.Get(c.key).ServerID} {
		if id == "" || slices.ContainsFunc(deletions, func(p *poll) bool { return p.id == id }) {
			continue
		}
		p, err := c.deletionByID(ctx, id)
		if err != nil {
			errs = append(errs, err)
		} else if p != nil {
			deletions = append(deletions, p)
		}
	}
	// What failed for a server of the machine may pass sooner than what is wrong with an ID.
	return cmp.Or(c.deleteServers(ctx, deletions), errors.Join(errs...))
}

// deletionOf polls a server that was just shown, and is to be deleted.
func (c *call) deletionOf(server *Server) *poll {
	p := c.pollOf(server)
	p.absence.isDeletion = true
	return p
}

// deletionByID reads a server that is to be deleted; nil if it turns out to be none of the
// machine's. One that this read does not show may still be there.
func (c *call) deletionByID(ctx context.Context, id string) (*poll, error) {
	p := c.poll(id)
	p.absence.isDeletion = true
	_, err := p.next(ctx)
	switch {
	case errors.Is(err, errUnlabelled) && c.clock.Now().Before(c.noPostBefore()):
		return nil, nil // the next look-up comes after that
	case errors.Is(err, errUnlabelled):
		return nil, c.labelsMissing(p.last)
	case errors.Is(err, errUnusable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return p, nil
}

// deleteNamed deletes the server that the request names, and no other.
func (c *call) deleteNamed(ctx context.Context) error {
	p, err := c.deletionByID(ctx, c.serverID)
	if err != nil || p == nil {
		return err
	}
	return c.deleteServers(ctx, []*poll{p})
}

// orphanTimeout bounds the deletion of an orphan: the manager deletes one after the other, and
// comes back by itself.
const orphanTimeout = 5 * time.Second

// deleteOrphan asks once for the deletion of a server that the orphan collector names, and
// waits for nothing. The server's own name must be the Machine's, too, and it must have no tag of
// OpenStack's: neither a machine label that was edited by hand nor a migration in the wrong order
// must cost a running server.
func (c *call) deleteOrphan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	p := c.poll(c.serverID)
	p.absence.onlyGet = true
	seen, err := p.next(ctx)
	err = cmp.Or(err, seen.failed) // there is no time for another read
	server := seen.server()
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
	err = p.sendDelete(ctx)
	if err == nil && !p.absence.owed && !server.IsDeleting() {
		c.meters.orphans.Inc()
	}
	return err
}

// deleteServers deletes the machine's servers, and waits until all are proved gone. Each is
// asked to go before any is waited for, and one that fails does not block the others.
func (c *call) deleteServers(ctx context.Context, deletions []*poll) error {
	var errs []error
	var awaited []*poll
	staying := 0
	for _, p := range deletions {
		if p.last == nil { // no DELETE before a read shows it
			awaited = append(awaited, p)
			continue
		}
		err := p.sendDelete(ctx)
		if !p.last.IsDeleting() {
			if staying++; staying > 1 {
				c.meters.duplicate(err)
			}
			if ends := p.steps.afterStep(ctx, err, p.state()); ends != nil {
				errs = append(errs, ends)
				continue
			}
		} // else it may be stuck: asking again does no harm
		awaited = append(awaited, p)
	}
	return errors.Join(append(errs, awaitAllGone(ctx, awaited)...)...)
}

// awaitAllGone waits for all at a time: a stuck deletion does not keep the others from being asked
// for again.
func awaitAllGone(ctx context.Context, deletions []*poll) []error {
	errs := make([]error, len(deletions))
	var all sync.WaitGroup
	for i, p := range deletions {
		all.Go(func() {
			defer recovered(&errs[i])
			errs[i] = p.awaitGone(ctx)
		})
	}
	all.Wait()
	return errs
}

// sendDelete asks the API for the deletion of the server as it was seen last. A DELETE that
// is answered 404 was not accepted, and is no proof: it is owed from then on. None is sent, which is no
// error, if the server has become a younger Machine's meanwhile.
func (p *poll) sendDelete(ctx context.Context) error {
	unjoined := p.explainUnjoined(ctx)
	if p.isOfYounger(p.id) { // the next read tells
		return nil
	}
	err := p.client.DeleteServer(ctx, p.id)
	notFound := isServerNotFound(err)
	p.absence.deleteSent(err == nil, notFound, p.last.Status, p.clock.Now())
	if notFound {
		return nil
	}
	if err == nil {
		unjoined.deleteAccepted(p.meters)
		klog.V(2).InfoS("Server deletion requested", "machine", p.machine, "server", p.id)
	}
	return err
}

// awaitGone waits until the server is proved gone, and returns nil only then. When a DELETE
// is sent again on the way: nextStep in gone.go. HTTP retries: pkg/spi/retry.go.
func (p *poll) awaitGone(ctx context.Context) error {
	for {
		seen, err := p.next(ctx)
		switch {
		case errors.Is(err, errGone), errors.Is(err, errUnusable): // gone, or never the machine's
			return nil
		case err != nil:
			return err
		}
		switch p.absence.nextStep(&seen, p.clock.Now()) {
		case waitOn:
		case lookCloser:
			p.absence.onlyGet, p.due = true, time.Time{}
		case askAgain:
			if err := p.steps.afterStep(ctx, p.sendDelete(ctx), p.state()); err != nil {
				return err
			}
		case giveUp:
			return newError(ReasonServerBusy,
				"two DELETEs of server %s were accepted, but it is %s, will be tried again: %s",
				p.id, p.last.Status, p.last.reason(p.spec.UserData))
		}
	}
}
