// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

// find reads the servers that match the selector, which lies in the call's scope. It
// includes servers that are being deleted, and checks the API's selection again.
func (c *call) find(ctx context.Context, selector map[string]string, notBefore time.Time) (lookUp, error) {
	result := c.readers.serversOf(c.scope()).Read(ctx, coalesce.Request[serverList, observation]{
		NotBefore: notBefore, Lists: true,
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

// findWithin looks for the machine's servers among all that carry the labels, nil for all of the
// project: among more than the machine's own look-ups select. Where none surely is the
// machine's, one that may be, but lacks a label, is an error: somebody must say whose it is. Not
// so for a machine that came from OpenStack.
func (c *call) findWithin(ctx context.Context, labels map[string]string, notBefore time.Time) (lookUp, error) {
	result := c.readers.serversOf(labels).Read(ctx, coalesce.Request[serverList, observation]{
		NotBefore: notBefore,
		Pick: func(list serverList, _ time.Time) (observation, bool) {
			seen := observation{servers: list.matching(c.machineSelector())}
			for _, server := range list.all {
				_, _, missing := c.missingLabel(&server)
				byName := c.byName && server.Name == c.machine && !matches(&server, c.machineSelector())
				if missing && !server.IsDeleting() || byName {
					seen.servers = append(seen.servers, server)
				}
			}
			return seen, true
		},
	})
	found := lookUp{servers: result.Value.servers, began: result.Began, ended: c.clock.Now(), breadth: ofMachineLabel}
	if labels == nil {
		found.breadth = ofProject
	}
	if result.Err != nil || c.fromOpenStack {
		return found, result.Err
	}
	return found, c.checkUnfindable(found.servers)
}

// checkUnfindable returns an error if one of the servers may be the machine's, but lacks a label by
// which look-ups would find it, and none of them surely is.
func (c *call) checkUnfindable(servers []Server) error {
	if slices.ContainsFunc(servers, func(server Server) bool {
		return matches(&server, c.machineSelector()) && c.admits(&server) && !server.IsDeleting()
	}) {
		return nil
	}
	own := c.ledger.Get(c.key).ServerID
	for _, server := range servers {
		key, want, missing := c.missingLabel(&server)
		if missing && server.ID != own && !c.ledger.Gone(c.key, server.ID) {
			return notOurs(&server, key, want)
		}
	}
	return nil
}

// findNamed finds the machine's servers by its label, and those of a machine that came from
// OpenStack without a ProviderID by its name, too, without those that are proved gone. If the cluster is unknown it
// returns an error: "none" would be a guess.
func (c *call) findNamed(ctx context.Context, notBefore time.Time, breadth breadth) (lookUp, error) {
	if !c.findable() {
		return lookUp{}, nil
	}
	if c.clusterUnknown {
		return lookUp{}, c.clusterUnknownError()
	}
	var found lookUp
	var err error
	switch {
	case breadth == ofProject, c.byName:
		found, err = c.findWithin(ctx, nil, notBefore)
	case breadth == ofMachineLabel:
		found, err = c.findWithin(ctx, map[string]string{StackitMachineLabel: c.machine}, notBefore)
	default:
		found, err = c.find(ctx, c.machineSelector(), notBefore)
	}
	found.servers = slices.DeleteFunc(found.servers, func(server Server) bool {
		return !c.admits(&server)
	})
	return found, err
}

// breadth is where a look-up looks.
type breadth int

const (
	// bySelector is among the servers that carry all labels of the machine's.
	bySelector breadth = iota
	// ofMachineLabel is among those that carry the machine label, whatever their class and cluster.
	ofMachineLabel
	// ofProject is among all of the project: a selector could be what is broken, and a server
	// could be from before it was labelled.
	ofProject
)

// search is a series of look-ups for the machine's servers, until they prove that there are
// no others.
type search struct {
	*call
	none  none
	reads wait
	// start is when it began, retryAt when the next look-up may begin after one that failed.
	start, retryAt time.Time
	// state is for the text of a late end.
	state string
}

func (c *call) search() *search {
	return &search{
		call: c, reads: c.newWait(), start: c.clock.Now(),
		none:  none{mayLackLabels: !c.young && c.serverID == "", settle: c.settle},
		state: fmt.Sprintf("a request for a server of machine %s may have been sent, and no server has shown yet", c.machine),
	}
}

// next returns what the next look-up shows.
func (s *search) next(ctx context.Context) (lookUp, error) {
	for {
		due, breadth := s.schedule()
		found, err := s.findNamed(ctx, later(due, s.retryAt), breadth)
		if breadth == ofProject {
			s.readers.project.note(err)
		}
		if ends := s.reads.afterRead(ctx, err, s.state); ends != nil || err == nil {
			return found, ends
		}
		now := s.clock.Now()
		s.retryAt = now.Add(pollInterval(now.Sub(s.start)))
		if breadth != ofProject {
			s.none.seen = 0 // what was seen before may have been another bad moment
		} else if s.readers.project.failLong() && !s.none.withoutProject {
			s.none.seen, s.none.withoutProject = 0, true
			klog.InfoS("Lists of the whole project fail, those by label do not: "+
				"servers without a machine label are not looked for", "machine", s.machine, "err", err)
		}
	}
}

// schedule returns when the next look-up is due, and where it looks.
func (s *search) schedule() (due time.Time, breadth breadth) {
	if s.none.seen == 0 && s.retryAt.IsZero() {
		return time.Time{}, bySelector
	}
	s.begin()
	now := s.clock.Now()
	return s.none.next(s.noPostBefore(), now, pollInterval(now.Sub(s.start)), s.nobodyElse())
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
		named, err := c.findNamed(ctx, time.Time{}, bySelector)
		if err != nil {
			return nil, err
		}
		if err := c.checkSeveral(named.servers); err != nil {
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
	c.ledger.Adopt(c.key, id)
	return p, nil
}
