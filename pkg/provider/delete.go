// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"
)

// deletion is one DeleteMachine.
type deletion struct {
	*call
	machine *v1alpha1.Machine
	// certain is when a look-up must begin to see every request for a server that
	// may have been sent.
	certain time.Time
	// answered says that the last of them was this process's, and which server it made.
	answered bool
}

// victims are the servers to delete, each checked to be the machine's. Those that
// are being deleted are among them: they are waited for.
func (d *deletion) victims(ctx context.Context) ([]Server, error) {
	serverID, err := d.serverIDOf(d.machine)
	if err != nil {
		return nil, err
	}
	// The orphan collector's requests carry no deletionTimestamp: they are about
	// the server they name and no other.
	if serverID != "" && d.machine.DeletionTimestamp == nil {
		return d.appendOwned(ctx, nil, serverID, true)
	}
	// As a rule the name finds them all.
	var servers []Server
	unread := d.clusterUnknown
	if !unread {
		named := d.namedServers(ctx, d.soon)
		if named.err != nil {
			return nil, named.err
		}
		servers = named.value
	}
	if servers, err = d.appendOwned(ctx, servers, serverID, true); err != nil {
		return nil, err
	}
	if servers, err = d.appendOwned(ctx, servers, d.ledger.get(d.key).serverID, false); err != nil {
		return nil, err
	}
	// One that is being deleted tells nothing, unless it is what the last POST made:
	// CreateMachine makes another beside it.
	known := serverID != "" || anyStays(servers) || d.answered
	if d.nameless || known && !unread {
		return servers, nil
	}
	others, err := d.certainlyNamed(ctx, known)
	for _, server := range others {
		if !contains(servers, server.ID) {
			servers = append(servers, server)
		}
	}
	return servers, err
}

func anyStays(servers []Server) bool {
	return slices.ContainsFunc(servers, func(server Server) bool { return !server.leaving() })
}

func contains(servers []Server, serverID string) bool {
	return slices.ContainsFunc(servers, func(server Server) bool { return server.ID == serverID })
}

// appendOwned appends the server with this ID, unless there is none, it is gone, or
// it is there already. byID says that the request named it.
func (d *deletion) appendOwned(ctx context.Context, servers []Server, serverID string, byID bool) ([]Server, error) {
	if serverID == "" || contains(servers, serverID) {
		return servers, nil
	}
	server, err := d.certainlyRead(ctx, serverID)
	if err == nil {
		err = d.checkOwned(server, byID)
	}
	if errors.Is(err, errGone) {
		return servers, nil
	}
	if err != nil {
		return nil, err
	}
	d.learnCluster(server)
	return append(servers, *server), nil
}

// certainlyRead reads the server. That it is gone is believed only where a list
// would show it: one that is younger than the lists lag is in none of them.
func (d *deletion) certainlyRead(ctx context.Context, serverID string) (*Server, error) {
	start := d.inventory.clock.Now()
	for soon := d.soon; ; soon = d.inventory.nextTick(start) {
		began := d.inventory.clock.Now()
		server, err := d.inventory.read(ctx, serverID, nil, soon)
		switch {
		case ctx.Err() != nil:
			return nil, lateError(ctx.Err(), fmt.Sprintf("server %s may be gone", serverID))
		case !errors.Is(err, errGone) || !began.Before(d.certain):
			return server, err
		}
	}
}

// learnCluster takes the cluster from the machine's own server where the
// providerSpec does not tell it.
func (d *deletion) learnCluster(server *Server) {
	if d.clusterUnknown {
		d.identity = newIdentity(d.identity.machine, d.class, server.Labels)
		d.inventory.scope = d.scope()
	}
}

// certainlyNamed finds all servers of the machine. Where nothing else is known of
// the machine, "none" (but those that are being deleted) is believed only when every
// request for a server that may have been sent would show.
func (d *deletion) certainlyNamed(ctx context.Context, otherwiseKnown bool) ([]Server, error) {
	start := d.inventory.clock.Now()
	for soon := d.soon; ; soon = d.inventory.nextTick(start) {
		named := d.namedServers(ctx, soon)
		switch {
		case ctx.Err() != nil:
			return nil, lateError(ctx.Err(), noServerYet(d.machine.Name))
		case named.err != nil || anyStays(named.value) || otherwiseKnown || !named.began.Before(d.certain):
			return named.value, named.err
		}
	}
}

// finish ends the machine's place in the ledger. A request about one server only
// leaves what is known of the machine's others.
func (d *deletion) finish(deleted []Server) {
	if d.machine.DeletionTimestamp != nil {
		d.ledger.forget(d.key)
		return
	}
	for i := range deleted {
		d.ledger.update(d.key, func(e *entry) {
			if e.serverID == deleted[i].ID {
				e.lose()
			}
		})
	}
}

// deleteServers deletes the servers, which were checked to be the machine's, and
// waits until all are proved to be gone.
func (c *call) deleteServers(ctx context.Context, servers []Server) error {
	for i := range servers {
		err := c.requestDeletion(ctx, servers[i].ID)
		// A deletion under way may be stuck: asking again does no harm.
		if err != nil && !servers[i].leaving() {
			return err
		}
	}
	for i := range servers {
		if err := c.awaitGone(ctx, servers[i].ID, c.proofSelector(matches(&servers[i], c.machineSelector()))); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) requestDeletion(ctx context.Context, serverID string) error {
	err := c.client.DeleteServer(ctx, serverID)
	if isServerNotFound(err) {
		return nil // awaitGone proves it
	}
	if err == nil {
		klog.V(2).InfoS("Server deletion requested", "machine", c.machine, "server", serverID)
	}
	return err
}

// deletionPatience is how long a server may keep the state it had before its
// deletion was accepted, until the deletion counts as failed.
const deletionPatience = 15 * time.Second

// awaitGone waits until the server is proved to be gone. A deletion that fails on
// the way is asked for once more.
func (c *call) awaitGone(ctx context.Context, serverID string, proof map[string]string) error {
	server, err := c.awaitDeletion(ctx, serverID, proof)
	if err == nil {
		if err := c.requestDeletion(ctx, serverID); err != nil {
			return err
		}
		server, err = c.awaitDeletion(ctx, serverID, proof)
	}
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	return newError(codes.Aborted, fmt.Sprintf("server %s was asked to go twice but is %s, will be tried again: %s",
		serverID, server.Status, server.reason()))
}

// awaitDeletion waits until the server is gone (errGone), or its deletion has
// failed: then it returns the server. A list may show the server as it was before
// its deletion; that it failed is believed after a read of its own only.
func (c *call) awaitDeletion(ctx context.Context, serverID string, proof map[string]string) (*Server, error) {
	for {
		asked, left := c.inventory.clock.Now(), false
		_, err := c.inventory.await(ctx, serverID, proof, noLull, func(server *Server) bool {
			if server.leaving() {
				left = true
				return false
			}
			return left || c.inventory.clock.Since(asked) > deletionPatience
		})
		if err != nil {
			return nil, err
		}
		server, err := c.inventory.read(ctx, serverID, proof, when{own: true})
		if errors.Is(err, errGone) || (err == nil && !server.leaving()) {
			return server, err
		}
		// It goes, or cannot be read now, which the next wait sees.
	}
}

// proofSelector is for the list that proves that a server is gone: the machine's,
// or, for a server that may not carry our labels, all.
func (c *call) proofSelector(labelled bool) map[string]string {
	if labelled && !c.nameless {
		return c.machineSelector()
	}
	return nil
}
