// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// fewServers and fewNICs are up to how many readers a scope reads one by one.
	fewServers = 4
	fewNICs    = 1
	// readPace is how many reads a second all scopes of an inventory make together.
	// With a burst of one it keeps every second below ten, but for retries.
	readPace = 8
	// scopeLifetime is how long a scope is kept that nobody asks.
	scopeLifetime = 10 * time.Minute
)

// inventory reads servers and NICs for all calls of a session and region
// together: API calls are scarce, so nobody polls alone. Readers of one scope (a
// cluster's servers, a network's NICs) share lists.
type inventory struct {
	client StackitClient
	clock  clock.Clock
	pace   *rate.Limiter

	mu      sync.Mutex
	servers map[string]*serverReads
	nics    map[string]*nicReads
	swept   time.Time
}

type (
	serverReads = reads[serverList, []Server]
	nicReads    = reads[map[string][]NIC, []NIC]
)

func newInventory(client StackitClient, clock clock.Clock) *inventory {
	return &inventory{
		client: client, clock: clock, pace: rate.NewLimiter(readPace, 1),
		servers: map[string]*serverReads{}, nics: map[string]*nicReads{},
	}
}

// when says how soon a reader needs its answer. The zero value is at once.
type when struct {
	// due is the tick of somebody who waits.
	due time.Time
	// patient readers do not mind a tick where many read.
	patient bool
	// own readers read by themselves: a list, which may lag, will not do.
	own bool
}

func (w when) reader(lookUp bool) reader {
	return reader{due: w.due, patient: w.patient, own: w.own, waits: !w.due.IsZero(), lookUp: lookUp}
}

// serverList is a list of servers, made ready for many questions.
type serverList struct {
	all       []Server
	byID      map[string]int
	byMachine map[string][]int
}

func newServerList(servers []Server) serverList {
	list := serverList{all: servers, byID: make(map[string]int, len(servers)), byMachine: make(map[string][]int, len(servers))}
	for i := range servers {
		list.byID[servers[i].ID] = i
		if machine, ok := servers[i].Labels[StackitMachineLabel]; ok {
			list.byMachine[machine] = append(list.byMachine[machine], i)
		}
	}
	return list
}

// matching returns the servers that match the selector.
func (l serverList) matching(selector map[string]string) []Server {
	found := []Server{}
	if machine, ok := selector[StackitMachineLabel]; ok {
		for _, i := range l.byMachine[machine] {
			if matches(&l.all[i], selector) {
				found = append(found, l.all[i])
			}
		}
		return found
	}
	for i := range l.all {
		if matches(&l.all[i], selector) {
			found = append(found, l.all[i])
		}
	}
	return found
}

// find reads the servers that match the selector, re-checked on our side, with
// those that are being deleted. The scope is a part of the selector that other
// readers have in common.
func (i *inventory) find(ctx context.Context, scope, selector map[string]string, soon when) reading[[]Server] {
	return i.serversOf(scope).ask(ctx, &question[serverList, []Server]{
		reader: soon.reader(true),
		single: func(ctx context.Context) ([]Server, error) {
			servers, err := i.client.ListServers(ctx, selector)
			return newServerList(servers).matching(selector), err
		},
		find: func(list serverList) ([]Server, bool) { return list.matching(selector), true },
	})
}

// get reads one server. One that the scope's list does not show is read by itself.
func (i *inventory) get(ctx context.Context, scope map[string]string, serverID string, soon when) (*Server, error) {
	answer := i.serversOf(scope).ask(ctx, &question[serverList, []Server]{
		reader: soon.reader(false),
		single: func(ctx context.Context) ([]Server, error) {
			server, err := i.client.GetServer(ctx, serverID)
			if err != nil {
				return nil, err
			}
			return []Server{*server}, nil
		},
		find: func(list serverList) ([]Server, bool) {
			at, shown := list.byID[serverID]
			if !shown {
				return nil, false
			}
			return []Server{list.all[at]}, true
		},
	})
	if answer.err != nil {
		return nil, answer.err
	}
	return &answer.value[0], nil
}

// serverNICs reads the NICs of a server. Many servers' are read by one list of the
// network they are all in; "" if that is not known: then each server's are read by
// themselves.
func (i *inventory) serverNICs(ctx context.Context, networkID, serverID string, soon when) ([]NIC, error) {
	answer := i.nicsOf(networkID, serverID).ask(ctx, &question[map[string][]NIC, []NIC]{
		reader: soon.reader(false),
		single: func(ctx context.Context) ([]NIC, error) { return i.client.ListServerNICs(ctx, serverID) },
		find: func(byServer map[string][]NIC) ([]NIC, bool) {
			nics, shown := byServer[serverID]
			return nics, shown
		},
	})
	return answer.value, answer.err
}

func (i *inventory) serversOf(scope map[string]string) *serverReads {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sweep()
	key := labelSelector(scope)
	found, ok := i.servers[key]
	if !ok {
		scope = maps.Clone(scope)
		found = newReads[serverList, []Server](i.clock, fewServers, i.pace, func(ctx context.Context) (serverList, error) {
			servers, err := i.client.ListServers(ctx, scope)
			return newServerList(servers), err
		})
		i.servers[key] = found
	}
	return found
}

// nicsOf is the scope of a network or, if that is not known, of the server alone.
func (i *inventory) nicsOf(networkID, serverID string) *nicReads {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sweep()
	key, list := networkID, func(ctx context.Context) (map[string][]NIC, error) {
		nics, err := i.client.ListNetworkNICs(ctx, networkID)
		byServer := make(map[string][]NIC, len(nics))
		for _, nic := range nics {
			byServer[nic.ServerID] = append(byServer[nic.ServerID], nic)
		}
		return byServer, err
	}
	if networkID == "" {
		key, list = serverID, func(ctx context.Context) (map[string][]NIC, error) {
			nics, err := i.client.ListServerNICs(ctx, serverID)
			return map[string][]NIC{serverID: nics}, err
		}
	}
	found, ok := i.nics[key]
	if !ok {
		found = newReads[map[string][]NIC, []NIC](i.clock, fewNICs, i.pace, list)
		i.nics[key] = found
	}
	return found
}

// sweep drops scopes that nobody asks any more.
func (i *inventory) sweep() {
	now := i.clock.Now()
	if now.Sub(i.swept) < scopeLifetime {
		return
	}
	i.swept = now
	since := now.Add(-scopeLifetime)
	maps.DeleteFunc(i.servers, func(_ string, r *serverReads) bool { return r.idle(since) })
	maps.DeleteFunc(i.nics, func(_ string, r *nicReads) bool { return r.idle(since) })
}
