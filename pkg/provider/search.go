// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

// find reads the servers that match the selector, which lies in the call's scope. It
// includes servers that are being deleted, and checks the API's selection again.
func (c *call) find(ctx context.Context, selector map[string]string, notBefore time.Time) (lookUp, error) {
	result := c.readers.serversOf(c.scope()).Read(ctx, coalesce.Request[serverList, observation]{
		NotBefore: notBefore,
		Single: safely(func(ctx context.Context) (observation, error) {
			servers, err := c.client.ListServers(ctx, selector)
			return observation{servers: newServerList(servers).matching(selector)}, err
		}),
		Pick: func(list serverList, _ time.Time) (observation, bool) {
			return observation{servers: list.matching(selector)}, true
		},
	})
	return lookUp{servers: result.Value.servers, began: result.Began, ended: c.clock.Now()}, result.Err
}

// findInProject looks for the machine's servers among all of the project. Where none surely is the
// machine's, one that may be, but lacks a label, is an error: somebody must say whose it is. Not
// so for a machine that came from OpenStack.
func (c *call) findInProject(ctx context.Context, notBefore time.Time) (lookUp, error) {
	pick := func(list serverList) observation {
		seen := observation{servers: list.matching(c.machineSelector())}
		for _, server := range list.all {
			_, _, missing := c.missingLabel(&server)
			if missing && !server.IsDeleting() || c.byName && server.Name == c.machine && !matches(&server, c.machineSelector()) {
				seen.servers = append(seen.servers, server)
			}
		}
		return seen
	}
	result := c.readers.serversOf(nil).Read(ctx, coalesce.Request[serverList, observation]{
		NotBefore: notBefore,
		Single: safely(func(ctx context.Context) (observation, error) {
			servers, err := c.client.ListServers(ctx, nil)
			return pick(newServerList(servers)), err
		}),
		Pick: func(list serverList, _ time.Time) (observation, bool) { return pick(list), true },
	})
	found := lookUp{servers: result.Value.servers, began: result.Began, ended: c.clock.Now(), wide: true}
	surely := func(server Server) bool {
		return matches(&server, c.machineSelector()) && c.admits(&server) && !server.IsDeleting()
	}
	if c.fromOpenStack || slices.ContainsFunc(found.servers, surely) {
		return found, result.Err
	}
	own := c.ledger.Get(c.key).ServerID
	for _, server := range found.servers {
		key, want, missing := c.missingLabel(&server)
		if missing && server.ID != own && !c.ledger.Gone(c.key, server.ID) {
			return lookUp{}, notOurs(&server, key, want)
		}
	}
	return found, result.Err
}

// findNamed finds the machine's servers by its label, and those of a machine that came from
// OpenStack without a ProviderID by its name, too, without those that are proved gone. If the cluster is unknown it
// returns an error: "none" would be a guess.
func (c *call) findNamed(ctx context.Context, notBefore time.Time, wide bool) (lookUp, error) {
	if !c.findable() {
		return lookUp{}, nil
	}
	if c.clusterUnknown {
		return lookUp{}, c.clusterUnknownError()
	}
	var found lookUp
	var err error
	if wide || c.byName {
		found, err = c.findInProject(ctx, notBefore)
	} else {
		found, err = c.find(ctx, c.machineSelector(), notBefore)
	}
	found.servers = slices.DeleteFunc(found.servers, func(server Server) bool {
		return !c.admits(&server)
	})
	return found, err
}

// search is a series of look-ups for the machine's servers, until they prove that there are
// no others.
type search struct {
	*call
	none none
	// start is when it began, looked says that there was a look-up.
	start  time.Time
	looked bool
}

func (c *call) search() *search { return &search{call: c, start: c.clock.Now()} }

// next returns what the next look-up shows.
func (s *search) next(ctx context.Context) (lookUp, error) {
	for {
		due, wide := s.schedule()
		found, err := s.findNamed(ctx, due, wide)
		s.looked = true
		state := fmt.Sprintf(TextMayBeSent+", and no server has shown yet", s.machine)
		if ends := s.afterRead(ctx, err, state); ends != nil || err == nil {
			return found, ends
		}
		s.none = none{} // what was seen before may have been another bad moment
	}
}

// schedule returns when the next look-up is due, and whether it looks at the whole project. Only
// such a one shows a server from before there were labels, so that a row of them begins with one
// where there may be such a server, and no ProviderID names it.
func (s *search) schedule() (due time.Time, wide bool) {
	mayLackLabels := !s.young && s.serverID == "" && s.none.first.IsZero()
	if !s.looked {
		return time.Time{}, mayLackLabels
	}
	s.begin()
	now := s.clock.Now()
	due, wide = s.none.next(s.noPostBefore(), now, pollInterval(now.Sub(s.start)), s.nobodyElse())
	return due, wide || mayLackLabels
}

// conclusive says that look-ups have proved that there are no servers beside those that the
// last one showed. In a deletion these are gone.
func (s *search) conclusive(found lookUp) bool {
	if !s.findable() {
		return true
	}
	if !s.none.add(&found, s.noPostBefore(), s.nobodyElse()) {
		return false
	}
	s.ledger.ProvedNone(s.key, found.began)
	return true
}

// withoutDeleting separates servers that stay from servers that are being deleted.
func withoutDeleting(servers []Server) (staying, deleting []Server) {
	for _, server := range servers {
		if server.IsDeleting() {
			deleting = append(deleting, server)
		} else {
			staying = append(staying, server)
		}
	}
	return staying, deleting
}

// existing finds the machine's only server by its ProviderID, the ledger or a look-up, and
// adopts it; errNoneKnown if there is none, or more than one.
func (c *call) existing(ctx context.Context) (*poll, error) {
	id := c.serverID
	if id == "" {
		id = c.ledger.Get(c.key).ServerID
	}
	if id == "" {
		named, err := c.findNamed(ctx, time.Time{}, false)
		if err != nil {
			return nil, err
		}
		staying, _ := withoutDeleting(named.servers)
		if len(staying) != 1 {
			return nil, errNoneKnown
		}
		id = staying[0].ID
	}
	p := c.poll(id)
	if err := p.present(ctx); err != nil {
		return nil, err
	}
	c.ledger.Adopt(c.key, c.uid, id)
	return p, nil
}
