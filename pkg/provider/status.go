// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// readRecorded returns the server in the record if it is ACTIVE and nothing is left to do for it; else errUnusable. It
// makes no look-up by name: CreateMachine does, and finishes what is unfinished.
func (c *call) readRecorded(ctx context.Context) (id string, err error) {
	id = c.record().serverID
	if id == "" || !c.knownConnection(id).complete() {
		return "", errUnusable
	}
	t := c.track(id)
	server, err := t.poll(ctx)
	if err = cmp.Or(err, t.reads.lastError); err != nil && !isNotOurs(err) {
		return "", err
	}
	if err != nil || server == nil || server.Status != statusActive {
		return "", errUnusable
	}
	return id, nil
}

// readNamed reads the server that the request's ProviderID names. errGone: it is gone; errUnusable: it is being
// deleted. Before that is certain, Unavailable brings the manager back: NotFound would be believed. The manager takes a
// Machine with a ProviderID whose status is NotFound for created, and never initializes its server. For a Machine that
// is deleted a single 404 is enough: DeleteMachine decides.
func (c *call) readNamed(ctx context.Context) error {
	t, certain := c.track(c.serverID), c.certain()
	t.removal.isWanted = c.isDeleted
	for {
		server, err := t.poll(ctx)
		switch {
		case err != nil:
			return err
		case t.reads.lastError != nil:
		case server == nil && c.isDeleted:
			return errGone
		case server == nil && c.clock.Now().Before(certain):
			return newError(ReasonNotReady,
				"server %s was not found, but it is too young to be sure that it is gone", c.serverID)
		case server == nil: // the next reads prove it
		case server.IsDeleting():
			return errUnusable
		default:
			return nil
		}
	}
}

// initialize returns the Machine's server once its NICs carry what they should, and their addresses. It makes no API
// call for a server that the record has seen so.
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
		err = faultyError(t.last.server, c.spec.UserData)
	}
	return t.id, addresses, err
}
