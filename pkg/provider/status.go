// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// readStatus reads the server in the request's ProviderID, with one answered read. For a Machine
// without a ProviderID it reads the server in the record, which must be ACTIVE and completely set up:
// CreateMachine looks for others. errUnusable: there is none, or it is being deleted.
func (c *call) readStatus(ctx context.Context) (*watch, error) {
	defer c.join()()
	w := c.watch(cmp.Or(c.serverID, c.record().serverID))
	if c.serverID == "" && (w.id == "" || c.missing(c.knownConnection(w.id)) != "") {
		return w, errUnusable
	}
	server, err := w.poll(ctx)
	for err == nil && w.reads.last != nil {
		server, err = w.poll(ctx)
	}
	isUnusable := errors.Is(err, errGone) || err == nil && (server == nil || server.IsDeleting())
	if c.serverID == "" {
		isUnusable = isUnusable || isNotOurs(err) || err == nil && server.Status != statusActive
	}
	switch {
	case isUnusable:
		return w, errUnusable
	case err == nil:
		c.records.change(&c.ref, func(known *record) { known.shown(w.id) })
	}
	return w, err
}

// awaitConnection reads the connection of a server that was just read.
func (w *watch) awaitConnection(ctx context.Context) (connection, error) {
	for {
		known, err := w.call.connect(ctx, w.id, false)
		if err = w.steps.afterRead(ctx, err, w.state()); err != nil || w.steps.last == nil {
			return known, err
		}
		if w.call.sleepUntil(ctx, w.steps.retry.due()) != nil {
			return known, w.call.late(ctx, w.state())
		}
	}
}

// initialize returns the Machine's server and addresses once its NICs are set up. It makes no API
// call if the record has seen that.
func (c *call) initialize(ctx context.Context) (id string, addresses []corev1.NodeAddress, err error) {
	id = c.record().serverID
	if known := c.knownConnection(id); c.missing(known) == "" && (c.serverID == "" || c.serverID == id) {
		return id, known.addresses, nil
	}
	w, err := c.theServer(ctx)
	if err != nil {
		return "", nil, err
	}
	addresses, err = w.awaitReady(ctx)
	if errors.Is(err, errFaulty) {
		err = faultyError(w.server, c.spec.UserData)
	}
	return w.id, addresses, err
}

// theServer reads the Machine's only server, from its ProviderID, the record or a list; errUnusable if
// there is none, or more than one.
func (c *call) theServer(ctx context.Context) (*watch, error) {
	id := cmp.Or(c.serverID, c.record().serverID)
	if id == "" {
		servers, _, err := c.find(ctx, c.clock.Now())
		if err == nil {
			err = c.checkSeveral(servers)
		}
		if err != nil {
			return nil, err
		}
		servers = slices.DeleteFunc(servers, func(server Server) bool { return server.IsDeleting() })
		if len(servers) != 1 {
			return nil, errUnusable
		}
		id = servers[0].ID
	}
	return c.adopt(ctx, c.watch(id))
}
