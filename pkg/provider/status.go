// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// readyByLedger returns the machine's server if this process knows one, it is ACTIVE and
// nothing is left to do for it; else errUnusable. It makes no look-up by name:
// CreateMachine does, and finishes what is unfinished.
func (c *call) readyByLedger(ctx context.Context) (id string, err error) {
	id = c.ledger.Get(c.key).ServerID
	if id == "" || !c.knownConnection(id).complete() {
		return "", errUnusable
	}
	seen, err := c.poll(id).next(ctx)
	if err = cmp.Or(err, seen.failed); err != nil && !isNotOurs(err) {
		return "", err
	}
	if server := seen.server(); err != nil || server == nil || server.Status != statusActive {
		return "", errUnusable
	}
	return id, nil
}

// namedByRequest reads the server that the request's ProviderID names; errGone says that it
// is gone, errUnusable that it is being deleted. Before that is certain, Unavailable brings
// the manager back. NotFound would be believed: the manager takes a Machine with a ProviderID
// whose status is NotFound for created, and never initializes its server. For one that is
// deleted a single 404 will do: DeleteMachine decides.
func (c *call) namedByRequest(ctx context.Context, isDeleted bool) error {
	p := c.poll(c.serverID)
	p.absence.isDeletion = isDeleted
	for {
		seen, err := p.next(ctx)
		server := seen.server()
		switch {
		case err != nil:
			return err
		case seen.failed != nil:
			continue
		case server == nil && isDeleted:
			return errGone
		case server == nil && c.clock.Now().Before(p.absence.noPostBefore):
			return newError(ReasonNotReady,
				"server %s was not found, but it is too young to be sure that it is gone", c.serverID)
		case server == nil:
			continue // the next reads prove it
		case server.IsDeleting():
			return errUnusable
		default:
			return nil
		}
	}
}

// initialized returns the machine's server once its NICs carry what they should, and
// their addresses. It makes no API call for one that this process has seen so.
func (c *call) initialized(ctx context.Context) (id string, addresses []corev1.NodeAddress, err error) {
	id = c.ledger.Get(c.key).ServerID
	if known := c.knownConnection(id); known.complete() && (c.serverID == "" || c.serverID == id) {
		return id, known.addresses, nil
	}
	server, err := c.existing(ctx)
	if err != nil {
		return "", nil, err
	}
	addresses, err = server.awaitReady(ctx)
	if errors.Is(err, errFaulty) {
		err = faultyError(server.last, c.spec.UserData)
	}
	return server.id, addresses, err
}
