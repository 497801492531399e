// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
)

// readyByLedger returns the machine's server if this process knows one, it is ACTIVE and
// nothing is left to do for it; else errNoServer. It makes no look-up by name:
// CreateMachine does, and finishes what is unfinished.
func (c *call) readyByLedger(ctx context.Context) (*Server, error) {
	id := c.ledger.Get(c.key).ServerID
	if id == "" || !c.knownConnection(id).complete() {
		return nil, errNoServer
	}
	seen, err := c.poll(id).next(ctx)
	if err != nil {
		return nil, err
	}
	server := seen.server()
	if server == nil || server.Status != statusActive || c.checkOwned(server, false) != nil {
		return nil, errNoServer
	}
	return server, nil
}

// namedByRequest reads the server that the request's ProviderID names; errNoServer if it
// is gone or being deleted. It does not wait until that is certain: Unavailable brings the
// manager back. NotFound would be believed: the manager takes a Machine with a ProviderID
// whose status is NotFound for created, and never initializes its server.
func (c *call) namedByRequest(ctx context.Context) (*Server, error) {
	p := c.poll(c.serverID)
	for {
		seen, err := p.next(ctx)
		server := seen.server()
		switch {
		case errors.Is(err, errGone):
			return nil, errNoServer
		case err != nil:
			return nil, err
		case server == nil && c.clock.Now().Before(p.absence.noPostBefore):
			return nil, newError(codes.Unavailable, fmt.Sprintf("server %s was not found, but "+TextTooYoung, c.serverID))
		case server == nil:
			continue // the next read proves it
		case server.IsDeleting():
			return nil, errNoServer
		default:
			return server, nil
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
	server, err := c.serverToInitialize(ctx)
	if err != nil {
		return "", nil, err
	}
	addresses, err = server.awaitReady(ctx)
	if errors.Is(err, errNoServer) && server.last.Status == statusError {
		err = faultyError(server.last)
	}
	return server.id, addresses, err
}

// serverToInitialize finds the server by its ProviderID, the ledger or its name, and
// adopts it; errNoServer if there is none.
func (c *call) serverToInitialize(ctx context.Context) (*poll, error) {
	id := c.serverID
	if id == "" {
		id = c.ledger.Get(c.key).ServerID
	}
	if id == "" {
		named, err := c.findNamed(ctx, time.Time{})
		if err != nil {
			return nil, err
		}
		staying, _ := withoutDeleting(named.servers)
		if len(staying) != 1 {
			return nil, errNoServer
		}
		id = staying[0].ID
	}
	p, err := c.present(ctx, id)
	if errors.Is(err, errGone) {
		return nil, errNoServer
	}
	if err == nil {
		err = c.checkOwned(p.last, id == c.serverID)
	}
	if err != nil {
		return nil, err
	}
	c.ledger.Adopt(c.key, id)
	return p, nil
}
