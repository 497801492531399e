// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

type (
	serverReader = coalesce.Group[serverList, observation]
	nicReader    = coalesce.Group[map[string][]NIC, []NIC]

	leftoverReader = coalesce.Group[leftoverList, leftoverList]
)

// callTimeout bounds the calls that wait for nothing, and a shared list: the retries of a
// handful of requests.
const callTimeout = 2 * time.Minute

// readerLifetime is how long a scope's reader is kept without a read.
const readerLifetime = 10 * time.Minute

// readPolicy is how the callers of a scope share reads.
var readPolicy = coalesce.Policy{
	Singles:    4,
	Window:     250 * time.Millisecond,
	Patience:   5 * time.Second,
	Backoff:    time.Second,
	MaxBackoff: 30 * time.Second,
	Timeout:    callTimeout,
	Shared:     isSessionWide,
}

// isSessionWide says that an API call failed for a reason that holds for all others of the
// session: refused credentials, or too many calls.
func isSessionWide(err error) bool {
	var api *APIError
	return isRefused(err) || errors.As(err, &api) && api.StatusCode == http.StatusTooManyRequests
}

// readers read servers and NICs for all calls of a session and region: callers who want
// to know of the same scope share reads (package coalesce).
type readers struct {
	client  StackitClient
	clock   clock.Clock
	policy  coalesce.Policy
	meters  *meters
	servers *recent.Map[string, *serverReader]
	nics    *recent.Map[string, *nicReader]
	// leftoverLists are of networks; leftovers reads one resource by its ID.
	leftoverLists *recent.Map[string, *leftoverReader]
	leftovers     *coalesce.Group[struct{}, leftover]
	// project is how lists of servers of the whole project fare.
	project *projectLists
}

// projectLists notes whether lists of the whole project fail, 413 or 504 of a large one.
type projectLists struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// failingSince is zero while they work; failed is when the last one failed.
	failingSince, failed time.Time
}

// projectFailsFor is for how long they must fail until look-ups do without.
const projectFailsFor = 10 * time.Minute

// note notes how a look-up in the whole project ended.
func (l *projectLists) note(err error) {
	var api *APIError
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isSessionWide(err):
		return
	case !errors.As(err, &api): // it worked, whatever it showed
		l.failingSince = time.Time{}
		return
	case l.failingSince.IsZero(), now.Sub(l.failed) >= projectFailsFor: // nobody has looked in between
		l.failingSince = now
	}
	l.failed = now
}

// failLong says that they have failed for projectFailsFor.
func (l *projectLists) failLong() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.failingSince.IsZero() && l.failed.Sub(l.failingSince) >= projectFailsFor
}

func newReaders(session *spi.Session, region string, clock clock.Clock, meters *meters) *readers {
	policy := readPolicy
	policy.Turn = func(ctx context.Context) error { return spi.WaitForRead(ctx, clock, session.Reads) }
	client := &meteredClient{
		StackitClient: &sdkClient{api: session.API, projectID: session.ProjectID, region: region},
		meters:        meters, projectID: session.ProjectID, region: region,
	}
	r := &readers{
		client: client, clock: clock, policy: policy, meters: meters,
		servers: recent.New[string, *serverReader](clock, readerLifetime),
		nics:    recent.New[string, *nicReader](clock, readerLifetime),
		project: &projectLists{clock: clock},

		leftoverLists: recent.New[string, *leftoverReader](clock, readerLifetime),
	}
	r.leftovers = coalesce.New[struct{}, leftover](clock, r.policyFor(resourceLeftovers), nil)
	return r
}

// serversOf returns the reader of the servers that carry the labels.
func (r *readers) serversOf(scope map[string]string) *serverReader {
	reader, _ := r.servers.Get(labelSelector(scope), func() (*serverReader, error) {
		return coalesce.New[serverList, observation](r.clock, r.policyFor(resourceServers), safely(func(ctx context.Context) (serverList, error) {
			servers, err := r.client.ListServers(ctx, scope)
			return newServerList(servers), err
		})), nil
	})
	return reader
}

// nicsOf returns the reader of the network's NICs. A network that is not known ("") has
// no list: the NICs of each server are read singly.
func (r *readers) nicsOf(networkID string) *nicReader {
	list := safely(func(ctx context.Context) (map[string][]NIC, error) {
		nics, err := r.client.ListNetworkNICs(ctx, networkID)
		byServer := make(map[string][]NIC, len(nics))
		for _, nic := range nics {
			byServer[nic.ServerID] = append(byServer[nic.ServerID], nic)
		}
		return byServer, err
	})
	if networkID == "" {
		list = nil
	}
	reader, _ := r.nics.Get(networkID, func() (*nicReader, error) {
		return coalesce.New[map[string][]NIC, []NIC](r.clock, r.policyFor(resourceNICs), list), nil
	})
	return reader
}

// policyFor is the policy of reads of the resource, which are measured.
func (r *readers) policyFor(resource string) coalesce.Policy {
	policy := r.policy
	policy.Observer = readMeter{r.meters, resource}
	return policy
}

// serverList is a list of servers, made ready for many requests, without those in DELETED,
// which do not exist.
type serverList struct {
	all       []Server
	byID      map[string]int
	byMachine map[string][]Server
}

func newServerList(servers []Server) serverList {
	servers = slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return s.Status == statusDeleted })
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

// of returns the list's observation of a server.
func (l serverList) of(serverID string) observation {
	seen := observation{others: len(l.all) > 0, listed: true}
	if at, shown := l.byID[serverID]; shown {
		seen.servers = []Server{l.all[at]}
	}
	return seen
}
