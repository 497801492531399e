// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// readRecorded reads the server in the record: errUnusable if it is not ACTIVE, or not completely
// set up. It makes no look-up by name: CreateMachine does, and completes the setup.
func (t *tracked) readRecorded(ctx context.Context) error {
	if t.id == "" || !t.call.knownConnection(t.id).complete() {
		return errUnusable
	}
	server, err := t.pollAnswered(ctx)
	if err != nil && !isNotOurs(err) {
		return err
	}
	if err != nil || server == nil || server.Status != statusActive {
		return errUnusable
	}
	return nil
}

// pollAnswered polls until a read is answered.
func (t *tracked) pollAnswered(ctx context.Context) (*Server, error) {
	for {
		if server, err := t.poll(ctx); err != nil || t.reads.lastError == nil {
			return server, err
		}
	}
}

// readNamed reads the server in the request's ProviderID. errGone: it is gone; errUnusable: it is
// being deleted. Until that is certain, Unavailable makes the manager call again, because it would
// believe NotFound: it takes a Machine with a ProviderID and the status NotFound for created, and
// never initializes its server. For a Machine that is deleted a single 404 is enough: DeleteMachine
// decides.
func (t *tracked) readNamed(ctx context.Context) error {
	c := t.call
	certain := c.certain()
	t.removal.isWanted = c.isDeleted
	for {
		server, err := t.pollAnswered(ctx)
		switch {
		case err != nil:
			return err
		case server == nil && c.isDeleted:
			return errGone
		case server == nil && c.clock.Now().Before(certain):
			return newError(ReasonNotReady,
				"server %s was not found, but it is too young to count as gone", c.serverID)
		case server == nil: // the next reads prove it
		case server.IsDeleting():
			return errUnusable
		default:
			return nil
		}
	}
}

// awaitConnection reads the connection of a server that was just read.
func (t *tracked) awaitConnection(ctx context.Context) (connection, error) {
	for {
		known, _, err := t.call.readConnection(ctx, t.id)
		if err = t.steps.afterRead(ctx, err, t.state()); err != nil || t.steps.lastError == nil {
			return known, err
		}
		if err = t.call.sleepUntil(ctx, t.due); err != nil {
			return known, err
		}
		t.due = t.polls.after(t.due, t.due)
	}
}

// listClass lists the servers of the class.
func (c *call) listClass(ctx context.Context) (*list[Server], error) {
	reads, polls := c.newWait(), pollsFrom(c.clock.Now())
	for due := (time.Time{}); ; due = polls.after(c.clock.Now(), c.clock.Now()) {
		listed := c.listOwn(ctx, due, c.classSelector())
		if err := reads.afterRead(ctx, listed.err, "the servers of the class could not be listed"); err != nil ||
			listed.err == nil {
			return listed, err
		}
	}
}

// initialize returns the Machine's server and addresses once its NICs are set up. It makes no API
// call if the record has seen that.
func (c *call) initialize(ctx context.Context) (id string, addresses []corev1.NodeAddress, err error) {
	id = c.record().serverID
	if known := c.knownConnection(id); known.complete() && (c.serverID == "" || c.serverID == id) {
		return id, known.addresses, nil
	}
	t, err := c.theServer(ctx)
	if err != nil {
		return "", nil, err
	}
	addresses, err = t.awaitReady(ctx)
	if errors.Is(err, errFaulty) {
		err = faultyError(t.last.server, c.spec)
	}
	return t.id, addresses, err
}
