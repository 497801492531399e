// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
)

// currentServer is GetMachineStatus's view: the ProviderID's server, else the
// ledger's, else the one that the name finds. Without a ProviderID only an ACTIVE
// server counts: one that is being made, that failed, or one of several is
// CreateMachine's business. errGone says that there is none.
func (c *call) currentServer(ctx context.Context, machine *v1alpha1.Machine) (*Server, error) {
	serverID, err := c.serverIDOf(machine)
	if err != nil {
		return nil, err
	}
	if serverID != "" {
		return c.presentServer(ctx, serverID)
	}
	if known := c.ledger.get(c.key).serverID; known != "" {
		server, err := c.inventory.read(ctx, known, nil, c.soon)
		switch {
		case err == nil && server.Status == statusActive:
			return server, nil
		case err == nil && !server.leaving():
			return nil, errGone // CreateMachine goes on with it
		case err != nil && !errors.Is(err, errGone):
			return nil, err
		}
		c.ledger.update(c.key, (*entry).lose)
	}
	return c.soleActive(ctx)
}

// presentServer reads a server by ID; one that is being deleted does not exist. A
// single 404 must not count: the manager takes a Machine with a ProviderID whose
// status is NotFound for created, and never initializes its server.
func (c *call) presentServer(ctx context.Context, serverID string) (*Server, error) {
	server, err := c.inventory.read(ctx, serverID, nil, c.soon)
	switch {
	case err != nil:
		return nil, err
	case server.leaving():
		return nil, errGone
	default:
		return server, nil
	}
}

// soleActive finds the machine's server by name, if there is one and it runs, and
// notes what it saw for the CreateMachine that may follow.
func (c *call) soleActive(ctx context.Context) (*Server, error) {
	named := c.namedServers(ctx, c.soon)
	if named.err != nil {
		return nil, named.err
	}
	if len(named.value) == 0 {
		c.ledger.update(c.key, func(e *entry) { e.absent = named.began })
	}
	servers, _ := withoutLeaving(named.value)
	if len(servers) != 1 || servers[0].Status != statusActive {
		return nil, errGone
	}
	c.adopt(servers[0].ID)
	return &servers[0], nil
}

// withoutLeaving parts the servers from those that are being deleted.
func withoutLeaving(servers []Server) (staying, leaving []Server) {
	for _, server := range servers {
		if server.leaving() {
			leaving = append(leaving, server)
		} else {
			staying = append(staying, server)
		}
	}
	return staying, leaving
}

// namedServers finds the machine's servers by name. Another cluster's are out of
// scope; but where the providerSpec does not tell the cluster, "none" would be a
// guess, and is an error.
func (c *call) namedServers(ctx context.Context, soon when) reading[[]Server] {
	if c.nameless {
		return reading[[]Server]{began: c.inventory.clock.Now()}
	}
	named := c.inventory.find(ctx, c.machineSelector(), soon)
	if named.err != nil {
		return named
	}
	own := reading[[]Server]{began: named.began}
	for _, server := range named.value {
		err := c.checkOwned(&server, false)
		if err != nil && c.clusterUnknown {
			own.err = newError(codes.FailedPrecondition, fmt.Sprintf(
				"server %s may be machine %s's, but the providerSpec's labels cannot be read to tell its cluster: repair the providerSpec", server.ID, c.machine))
			return own
		}
		if err == nil {
			own.value = append(own.value, server)
		}
	}
	return own
}

// runningServer is InitializeMachine's view: the ID of the server to initialize.
// A server that this process did not check yet is read, to see that it is ours,
// if there is anything to change on it.
func (c *call) runningServer(ctx context.Context, machine *v1alpha1.Machine) (string, error) {
	known := c.ledger.get(c.key).serverID
	serverID, err := c.serverIDOf(machine)
	if err != nil {
		return "", err
	}
	if serverID == "" {
		serverID = known
	}
	if serverID == "" {
		server, err := c.soleActive(ctx)
		if err != nil {
			return "", err
		}
		return server.ID, nil
	}
	if serverID == known || len(c.spec.AllowedAddresses) == 0 {
		return serverID, nil
	}
	server, err := c.presentServer(ctx, serverID)
	if err != nil {
		return "", err
	}
	if err := c.checkOwned(server, true); err != nil {
		return "", err
	}
	c.adopt(serverID)
	return serverID, nil
}

// adopt notes the machine's server; what was known of another is void.
func (c *call) adopt(serverID string) {
	c.ledger.update(c.key, func(e *entry) {
		if e.serverID != serverID {
			e.lose()
			e.serverID = serverID
		}
	})
}

// noServerYet is what a look-up answers that may not be believed yet.
func noServerYet(machine string) string {
	return fmt.Sprintf("a request for a server of machine %s may have been sent, and no server has shown yet", machine)
}
