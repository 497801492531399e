// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// The numbers of polling; those of an absence: gone.go. How many reads may begin in a
// second: readsPerSecond in pkg/spi/spi.go. Retries of a read: pkg/spi/retry.go.
const (
	// firstPoll is the time from a POST to the first read of its server: hardly any runs
	// before, and most for which there is no host have failed by then.
	firstPoll = 5 * time.Second
	// The poll interval is a pollShare-th of the time since the POST, or since the wait
	// began, but at least leastPoll and at most mostPoll.
	pollShare = 10
	leastPoll = time.Second
	mostPoll  = 10 * time.Second
)

// poll reads one server again and again.
type poll struct {
	*call
	id string
	// byID says that the server counts as the machine's by its name, too.
	byID bool
	// reads and steps are the waits for reads of the server, and for what is done with it.
	reads, steps wait
	// since is the POST, or the start of the wait: the poll interval follows from it.
	since time.Time
	// due is when the next read is.
	due time.Time
	// absence are the signs that the server is gone.
	absence absence
	// last is the server as it was seen last; nil before.
	last *Server
	// missing is what an ACTIVE server lacks, for the text of a late end.
	missing string
}

func (c *call) poll(serverID string) *poll {
	return &poll{
		call: c, id: serverID, byID: serverID == c.serverID, since: c.clock.Now(),
		reads: c.newWait(), steps: c.newWait(),
		// A list may show a server that was proved gone.
		absence: absence{noPostBefore: c.noPostBefore(), onlyGet: c.ledger.Gone(c.key, serverID)},
	}
}

// pollOf polls a server that a look-up has shown.
func (c *call) pollOf(server *Server) *poll {
	p := c.poll(server.ID)
	p.last, p.due = server, p.since.Add(leastPoll)
	p.absence.shown(server, &observation{listed: true})
	return p
}

// next makes the next read. It returns errGone with the one that proves the server gone,
// and that of the ownership check for one that the call must not use. A read that failed, and is tried
// again, shows nothing: the observation has its error.
func (p *poll) next(ctx context.Context) (observation, error) {
	now := p.clock.Now()
	if p.due.After(now) {
		p.begin()
	}
	result := p.read(ctx, p.absence.nextRead(later(p.due, now)))
	p.due = result.Began.Add(pollInterval(p.clock.Since(p.since)))
	if err := p.reads.afterRead(ctx, result.Err, p.state()); err != nil || result.Err != nil {
		return observation{failed: result.Err}, err
	}
	seen := result.Value
	seen.began, seen.ended = result.Began, p.clock.Now()
	if seen.listed || seen.server() != nil {
		p.placeSeen.Store(true)
	}
	isFirst := p.absence.row.any.IsZero()
	if p.absence.add(&seen) {
		p.provedGone.Store(p.id, true)
		p.ledger.ServerGone(p.key, p.id)
		p.meters.gone(p.class, p.id)
		return observation{}, errGone
	}
	if due, ok := p.absence.nextSign(seen.ended); ok {
		if p.due = due; isFirst && p.absence.progress == notAsked {
			klog.V(2).InfoS("A server is not shown though nobody asked for its deletion; that is believed after more reads",
				"machine", p.machine, "server", p.id, "after", unexpectedApart)
		}
	}
	if p.absence.onlyGet && seen.listed {
		seen.servers = nil
	}
	server := seen.server()
	if server == nil {
		return seen, nil
	}
	if !seen.listed {
		p.ledger.ServerShown(p.key, p.id)
	}
	p.last = server
	return seen, p.enter(server, p.byID)
}

// read makes a read of the kind. What a GET does not tell, the next read asks a list: at once
// where the call would else end with the GET's error.
func (p *poll) read(ctx context.Context, kind readKind) coalesce.Result[observation] {
	result := p.readBy(ctx, kind)
	if result.Err == nil || kind == byList || ctx.Err() != nil || isSessionWide(result.Err) {
		return result
	}
	p.absence.getFailed()
	// The readers have asked a list already for what is no GET alone, and where a list may be old it
	// says nothing.
	if p.begun.Load() || p.absence.onlyGet || kind == byAny && !p.absence.isDeletion {
		return result
	}
	if listed := p.readBy(ctx, byList); listed.Err == nil {
		return listed
	}
	return result
}

func pollInterval(age time.Duration) time.Duration {
	return min(max(age/pollShare, leastPoll), mostPoll)
}

// inScope says whether lists of the call's scope show the server, as far as is known of
// its labels.
func (p *poll) inScope() bool {
	return p.last != nil && matches(p.last, p.scope())
}

// reader is the scope's, unless the read may be a list and that would not show the server: one
// from OpenStack need not have labels. Where lists of the project fail, one by the machine label
// takes their place; it is blind for a server that does not have that either.
func (p *poll) reader(kind readKind) (reader *serverReader, isBlind bool) {
	byLabel := map[string]string{StackitMachineLabel: p.machine}
	switch {
	case p.inScope() || kind != byList && !p.fromOpenStack:
		return p.readers.serversOf(p.scope()), false
	case kind == byList && p.machine != "" && p.readers.project.failLong():
		return p.readers.serversOf(byLabel), p.last != nil && !matches(p.last, byLabel)
	default:
		return p.readers.serversOf(nil), false
	}
}

// readBy makes a read of the kind.
func (p *poll) readBy(ctx context.Context, kind readKind) coalesce.Result[observation] {
	reader, isBlind := p.reader(kind)
	result := reader.Read(ctx, p.request(kind))
	result.Value.blind = isBlind
	if kind == byList && reader == p.readers.serversOf(nil) {
		p.readers.project.note(ctx, result.Err)
	}
	return result
}

// request is the next read, by the labels as they were seen last.
func (p *poll) request(kind readKind) coalesce.Request[serverList, observation] {
	get := p.get(!p.absence.accepted.IsZero())
	request := coalesce.Request[serverList, observation]{NotBefore: p.due, Single: get}
	switch kind {
	case byGet:
	case byList:
		selector := p.selector()
		p.absence.selectable = selector != nil
		if request.Single, request.Lists = p.list(selector), true; selector == nil {
			request.Single = nil // it would be the whole list
		}
		if selector == nil || !p.absence.getsFail { // else none that may be cut off
			request.Pick = func(list serverList, _ time.Time) (observation, bool) { return list.of(p.id), true }
		}
	default:
		// Of a server that is to go, a list that does not show it is an answer.
		absenceTells := !p.absence.accepted.IsZero() && (p.inScope() || p.fromOpenStack)
		request.Pick = func(list serverList, began time.Time) (observation, bool) {
			seen := list.of(p.id)
			return seen, seen.server() != nil || absenceTells && p.absence.countsList(began)
		}
	}
	return request
}

// get is a GET of the server; afterDelete says that our DELETE was accepted before. It may outlive
// the call's wait for it.
func (p *poll) get(afterDelete bool) func(context.Context) (observation, error) {
	return func(ctx context.Context) (observation, error) {
		server, err := p.client.GetServer(ctx, p.id)
		switch {
		case isServerNotFound(err), err == nil && server.Status == statusDeleted:
			return observation{}, nil
		case isForbidden(err) && afterDelete:
			return observation{forbidden: true}, nil
		case err != nil:
			return observation{}, err
		default:
			return observation{servers: []Server{*server}}, nil
		}
	}
}

// list is a list of what the machine's selector selects.
func (p *poll) list(selector map[string]string) func(context.Context) (observation, error) {
	return func(ctx context.Context) (observation, error) {
		servers, err := p.client.ListServers(ctx, selector)
		seen := newServerList(servers).of(p.id)
		seen.selected = true
		return seen, err
	}
}

// selector selects the server in lists; nil if its labels are not known to do.
func (p *poll) selector() map[string]string {
	if p.last != nil && matches(p.last, p.machineSelector()) {
		return p.machineSelector()
	}
	return nil
}

func (p *poll) state() string {
	switch {
	case p.last == nil && p.absence.isDeletion && p.absence.getsFail:
		return fmt.Sprintf("server %s cannot be read, and no two lists show other servers without it", p.id)
	case p.last == nil:
		return fmt.Sprintf("server %s is not read yet", p.id)
	case p.missing != "":
		return fmt.Sprintf("server %s is %s, but %s", p.id, p.last.Status, p.missing)
	default:
		return fmt.Sprintf("server %s is %s", p.id, p.last.Status)
	}
}

// until reads the server until done says so, or it is proved gone (errGone).
func (p *poll) until(ctx context.Context, done func(*Server) bool) (*Server, error) {
	for {
		seen, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		if server := seen.server(); server != nil && done(server) {
			return server, nil
		}
	}
}

// present reads the server until a read shows it (the poll's last), or proves it gone.
func (p *poll) present(ctx context.Context) error {
	_, err := p.until(ctx, func(*Server) bool { return true })
	return err
}

// find reads the servers that match the selector, which lies in the call's scope. It
// includes servers that are being deleted, and checks the API's selection again.
func (c *call) find(ctx context.Context, selector map[string]string, notBefore time.Time) (lookUp, error) {
	result := c.readers.serversOf(c.scope()).Read(ctx, coalesce.Request[serverList, observation]{
		NotBefore: notBefore, Lists: true,
		Single: func(ctx context.Context) (observation, error) {
			servers, err := c.client.ListServers(ctx, selector)
			return observation{servers: newServerList(servers).matching(selector)}, err
		},
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
			s.readers.project.note(ctx, err)
		}
		if err == nil {
			s.placeSeen.Store(true)
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
// adopts it; errUnusable if there is none, or more than one.
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
			return nil, errUnusable
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

type (
	serverReader   = coalesce.Group[serverList, observation]
	nicReader      = coalesce.Group[map[string][]NIC, []NIC]
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
	Recovered:  recovered,
}

// isSessionWide reports whether an API call failed for a reason that holds for all others of the
// session: refused credentials, or too many calls, in any form.
func isSessionWide(err error) bool {
	var api *APIError
	return spi.IsRefused(err) || errors.As(err, &api) &&
		(api.StatusCode == http.StatusUnauthorized || api.StatusCode == http.StatusTooManyRequests)
}

// readers read servers and NICs for all calls of a session and region: callers who want
// to know of the same scope share reads (package coalesce).
type readers struct {
	client  StackitClient
	clock   clock.Clock
	policy  coalesce.Policy
	servers *recent.Map[string, *serverReader]
	nics    *recent.Map[string, *nicReader]
	// leftoverLists are of networks; leftovers reads one resource by its ID.
	leftoverLists *recent.Map[string, *leftoverReader]
	leftovers     *coalesce.Group[struct{}, leftover]
	// project is how lists of servers of the whole project fare.
	project *projectLists
}

func newReaders(session *spi.Session, region string, clock clock.Clock, meters *meters) *readers {
	policy := readPolicy
	policy.Turn = func(ctx context.Context) error { return spi.WaitForRead(ctx, clock, session.Reads) }
	client := &meteredClient{
		StackitClient: &sdkClient{api: session.API, projectID: session.ProjectID, region: region},
		meters:        meters, projectID: session.ProjectID, region: region,
	}
	r := &readers{
		client: client, clock: clock, policy: policy,
		servers: recent.New[string, *serverReader](clock, readerLifetime),
		nics:    recent.New[string, *nicReader](clock, readerLifetime),
		project: &projectLists{clock: clock},

		leftoverLists: recent.New[string, *leftoverReader](clock, readerLifetime),
	}
	r.leftovers = coalesce.New[struct{}, leftover](clock, policy, nil)
	return r
}

// serversOf returns the reader of the servers that carry the labels.
func (r *readers) serversOf(scope map[string]string) *serverReader {
	return r.servers.Get(labelSelector(scope), func() *serverReader {
		list := func(ctx context.Context) (serverList, error) {
			servers, err := r.client.ListServers(ctx, scope)
			return newServerList(servers), err
		}
		return coalesce.New[serverList, observation](r.clock, r.policy, list)
	})
}

// nicsOf returns the reader of the network's NICs. A network that is not known ("") has
// no list: the NICs of each server are read singly.
func (r *readers) nicsOf(networkID string) *nicReader {
	list := func(ctx context.Context) (map[string][]NIC, error) {
		nics, err := r.client.ListNetworkNICs(ctx, networkID)
		byServer := make(map[string][]NIC, len(nics))
		for _, nic := range nics {
			byServer[nic.ServerID] = append(byServer[nic.ServerID], nic)
		}
		return byServer, err
	}
	if networkID == "" {
		list = nil
	}
	return r.nics.Get(networkID, func() *nicReader {
		return coalesce.New[map[string][]NIC, []NIC](r.clock, r.policy, list)
	})
}

// serverList is a list of servers, made ready for many requests: each server once, without those
// in DELETED, which do not exist.
type serverList struct {
	all       []Server
	byID      map[string]int
	byMachine map[string][]Server
}

func newServerList(servers []Server) serverList {
	list := serverList{byID: make(map[string]int, len(servers)), byMachine: make(map[string][]Server, len(servers))}
	for _, server := range servers {
		if _, isAgain := list.byID[server.ID]; isAgain && server.ID != "" || server.Status == statusDeleted {
			continue
		}
		list.byID[server.ID] = len(list.all)
		list.all = append(list.all, server)
		if machine, ok := server.Labels[StackitMachineLabel]; ok {
			list.byMachine[machine] = append(list.byMachine[machine], server)
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
