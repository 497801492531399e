// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

type (
	serverGroup = coalesce.Group[serverList, sight]
	nicGroup    = coalesce.Group[map[string][]NIC, []NIC]
)

// inventory reads servers and NICs for all calls of a session and region together.
type inventory struct {
	client  StackitClient
	clock   clock.Clock
	policy  coalesce.Policy
	servers *recent.Map[string, *serverGroup]
	nics    *recent.Map[string, *nicGroup]
}

func newInventory(session *spi.Session, region string, clock clock.Clock) *inventory {
	policy := readPolicy
	policy.Turn = func(ctx context.Context) error {
		if session.Reads == nil { // another SessionProviderInterface may have no limit
			return nil
		}
		now := clock.Now()
		return spi.Sleep(ctx, clock, session.Reads.ReserveN(now, 1).DelayFrom(now))
	}
	return &inventory{
		client: &sdkClient{api: session.API, projectID: session.ProjectID, region: region}, clock: clock, policy: policy,
		servers: recent.New[string, *serverGroup](clock, groupLifetime),
		nics:    recent.New[string, *nicGroup](clock, groupLifetime),
	}
}

// serversOf is the group of those who read the servers that carry the labels.
func (i *inventory) serversOf(scope map[string]string) *serverGroup {
	group, _ := i.servers.Get(labelSelector(scope), func() (*serverGroup, error) {
		return coalesce.New[serverList, sight](i.clock, i.policy, safely(func(ctx context.Context) (serverList, error) {
			servers, err := i.client.ListServers(ctx, scope)
			return newServerList(servers), err
		})), nil
	})
	return group
}

// nicsOf is the group of those who read the NICs of the network; "" if it is not known:
// then each server's are read by themselves.
func (i *inventory) nicsOf(networkID string) *nicGroup {
	list := safely(func(ctx context.Context) (map[string][]NIC, error) {
		nics, err := i.client.ListNetworkNICs(ctx, networkID)
		byServer := make(map[string][]NIC, len(nics))
		for _, nic := range nics {
			byServer[nic.ServerID] = append(byServer[nic.ServerID], nic)
		}
		return byServer, err
	})
	if networkID == "" {
		list = nil
	}
	group, _ := i.nics.Get(networkID, func() (*nicGroup, error) {
		return coalesce.New[map[string][]NIC, []NIC](i.clock, i.policy, list), nil
	})
	return group
}

// safely guards a read, which runs in a goroutine of its own, against panics.
func safely[V any](read func(context.Context) (V, error)) func(context.Context) (V, error) {
	return func(ctx context.Context) (value V, err error) {
		defer recovered(&err)
		return read(ctx)
	}
}

// serverList is a list of servers, made ready for many requests.
type serverList struct {
	all       []Server
	byID      map[string]int
	byMachine map[string][]Server
}

func newServerList(servers []Server) serverList {
	list := serverList{all: servers, byID: make(map[string]int, len(servers)), byMachine: make(map[string][]Server, len(servers))}
	for i := range servers {
		list.byID[servers[i].ID] = i
		if machine, ok := servers[i].Labels[StackitMachineLabel]; ok {
			list.byMachine[machine] = append(list.byMachine[machine], servers[i])
		}
	}
	return list
}

// matching returns the servers that match the selector.
func (l serverList) matching(selector map[string]string) []Server {
	candidates := l.all
	if machine, ok := selector[StackitMachineLabel]; ok {
		candidates = l.byMachine[machine]
	}
	var found []Server
	for i := range candidates {
		if matches(&candidates[i], selector) {
			found = append(found, candidates[i])
		}
	}
	return found
}

// sight is what one read shows.
type sight struct {
	// servers that were asked for.
	servers []Server
	// others says that a list shows other servers.
	others bool
	// listed says that it was a list.
	listed bool
	// began is when the read began.
	began time.Time
}

// server is the one that was asked for by its ID; nil if it is not shown.
func (s *sight) server() *Server {
	if len(s.servers) == 0 {
		return nil
	}
	return &s.servers[0]
}

// of returns what the list shows of a server. One that is DELETED is not there.
func (l serverList) of(serverID string) sight {
	seen := sight{others: len(l.all) > 0, listed: true}
	if at, shown := l.byID[serverID]; shown && l.all[at].Status != statusDeleted {
		seen.servers = []Server{l.all[at]}
	}
	return seen
}
