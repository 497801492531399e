// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

// The numbers of polling. How many reads may begin in a second: readsPerSecond in
// pkg/spi/spi.go. Retries of a read: pkg/spi/retry.go.
const (
	// firstPoll is the time from a POST to the first read of its server: hardly any runs
	// before, and most for which there is no host have failed by then.
	firstPoll = 5 * time.Second
	// The poll interval is a pollShare-th of the time since the POST, or since the wait
	// began, but at least leastPoll and at most mostPoll.
	pollShare = 10
	leastPoll = time.Second
	mostPoll  = 10 * time.Second
	// signsApart is the least time between the two reads that prove a server gone.
	signsApart = time.Second
	// deletionPatience is how long a server may keep the state it had before its DELETE was
	// accepted, until the deletion counts as failed.
	deletionPatience = 15 * time.Second
	// readerLifetime is how long a scope's reader is kept without a read.
	readerLifetime = 10 * time.Minute
)

// readPolicy is how the callers of a scope share reads.
var readPolicy = coalesce.Policy{
	Singles:    4,
	Window:     250 * time.Millisecond,
	Patience:   5 * time.Second,
	Backoff:    time.Second,
	MaxBackoff: 30 * time.Second,
	Timeout:    callTimeout,
	Shared:     isEverybodys,
}

// isEverybodys says that an API call failed for a reason that holds for all others of the
// session: refused credentials, or too many calls.
func isEverybodys(err error) bool {
	var api *APIError
	return isRefused(err) || errors.As(err, &api) && api.StatusCode == http.StatusTooManyRequests
}

var (
	// errGone says that a server is proved gone, and nothing else.
	errGone = errors.New("the server is gone")
	// errNoServer says that there is no server that this call can use.
	errNoServer = errors.New("there is no server that can be used")
)

// find reads the servers that match the selector, which lies in the call's scope. It
// includes servers that are being deleted, and checks the API's selection again.
func (c *call) find(ctx context.Context, selector map[string]string, notBefore time.Time) (observation, error) {
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
	result.Value.began = result.Began
	return result.Value, result.Err
}

// findNamed finds the machine's servers by its label, without those that are proved gone.
// If the cluster is unknown it returns an error: "none" would be a guess.
func (c *call) findNamed(ctx context.Context, notBefore time.Time) (observation, error) {
	if c.unlabelable {
		return observation{began: c.clock.Now()}, nil
	}
	if c.clusterUnknown {
		return observation{}, c.clusterUnknownError()
	}
	found, err := c.find(ctx, c.machineSelector(), notBefore)
	if err != nil {
		return observation{}, err
	}
	entry := c.ledger.Get(c.key)
	named := observation{began: found.began}
	for _, server := range found.servers {
		if c.checkOwned(&server, false) == nil && !entry.Gone(server.ID) {
			named.servers = append(named.servers, server)
		}
	}
	return named, nil
}

// search is a series of look-ups for the machine's servers, on the poll interval, until no
// POST can have a result that it did not see.
type search struct {
	*call
	lookUp     func(ctx context.Context, notBefore time.Time) (observation, error)
	start, due time.Time
	// waiting says that the wait has begun: a look-up that fails does not end it.
	waiting bool
}

func (c *call) search(lookUp func(context.Context, time.Time) (observation, error), waiting bool) *search {
	return &search{call: c, lookUp: lookUp, start: c.clock.Now(), waiting: waiting}
}

// next returns what the next look-up shows.
func (s *search) next(ctx context.Context) (observation, error) {
	for {
		found, err := s.lookUp(ctx, s.due)
		now := s.clock.Now()
		s.due = now.Add(pollInterval(now.Sub(s.start)))
		if settled := s.noPostBefore(); settled.After(now) && settled.Before(s.due) {
			s.due = settled
		}
		var decided *Error
		if err == nil || !s.waiting || errors.As(err, &decided) {
			s.waiting = true
			return found, err
		}
		state := fmt.Sprintf(TextMayBeSent+", and no server has shown yet", s.machine)
		if err := endsWait(ctx, err, state); err != nil {
			return observation{}, err
		}
	}
}

// conclusive says that a look-up could see the result of every POST that is open now.
func (s *search) conclusive(found observation) bool {
	return s.unlabelable || !found.began.Before(s.noPostBefore())
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

// poll reads one server again and again.
type poll struct {
	*call
	id string
	// since is the POST, or the start of the wait: the poll interval follows from it.
	since time.Time
	// due is when the next read is.
	due time.Time
	// absence are the signs that the server is gone.
	absence absence
	// doubted says that lists which show the server may be old, so that only a GET counts:
	// the last GET was answered 404, or a deletion seems to have failed.
	doubted bool
	// last is the server as it was seen last; nil before.
	last *Server
	// missing is what an ACTIVE server lacks, for the text of a late end.
	missing string
}

func (c *call) poll(serverID string) *poll {
	return &poll{call: c, id: serverID, since: c.clock.Now(), absence: absence{noPostBefore: c.noPostBefore()}}
}

// next makes the next read, and returns errGone with the one that proves the server
// gone: it is noted in the ledger then.
func (p *poll) next(ctx context.Context) (observation, error) {
	kind := p.absence.nextRead(p.clock.Now())
	if p.doubted && kind == byAny {
		kind = byGet
	}
	result := p.reader(kind).Read(ctx, p.request(kind))
	seen := result.Value
	seen.began = result.Began
	p.due = seen.began.Add(pollInterval(p.clock.Since(p.since)))
	if result.Err != nil {
		return observation{}, result.Err
	}
	if p.absence.add(seen) {
		p.ledger.ServerGone(p.key, p.id)
		p.meters.gone(p.class, p.id)
		return observation{}, errGone
	}
	if !seen.listed {
		p.doubted = seen.server() == nil
	} else if p.doubted {
		seen.servers = nil
	}
	if server := seen.server(); server != nil {
		p.last = server
	}
	if p.absence.last != nil {
		p.due = p.absence.last.began.Add(signsApart)
	}
	return seen, nil
}

func pollInterval(age time.Duration) time.Duration {
	return min(max(age/pollShare, leastPoll), mostPoll)
}

// inScope says whether lists of the call's scope show the server, as far as is known of
// its labels.
func (p *poll) inScope() bool {
	return p.last != nil && matches(p.last, p.scope())
}

// reader is the scope's, unless the read is a list and that would not show the server.
func (p *poll) reader(kind readKind) *serverReader {
	if p.inScope() || kind != byList {
		return p.readers.serversOf(p.scope())
	}
	return p.readers.serversOf(nil)
}

// request is the next read, by the labels as they were seen last.
func (p *poll) request(kind readKind) coalesce.Request[serverList, observation] {
	request := coalesce.Request[serverList, observation]{NotBefore: p.due, Single: safely(p.get)}
	switch kind {
	case byGet:
	case byList:
		request.Single = safely(p.list)
		request.Pick = func(list serverList, _ time.Time) (observation, bool) { return list.of(p.id), true }
	default:
		// Of a server that is to go, a list that does not show it is an answer.
		absenceTells := !p.absence.deleted.IsZero() && p.inScope()
		request.Pick = func(list serverList, began time.Time) (observation, bool) {
			seen := list.of(p.id)
			return seen, seen.server() != nil || absenceTells && !began.Before(p.absence.noPostBefore)
		}
	}
	return request
}

func (p *poll) get(ctx context.Context) (observation, error) {
	server, err := p.client.GetServer(ctx, p.id)
	switch {
	case isServerNotFound(err), err == nil && server.Status == statusDeleted:
		return observation{}, nil
	case err != nil:
		return observation{}, err
	default:
		return observation{servers: []Server{*server}}, nil
	}
}

func (p *poll) list(ctx context.Context) (observation, error) {
	var selector map[string]string
	if p.last != nil && matches(p.last, p.machineSelector()) {
		selector = p.machineSelector()
	}
	servers, err := p.client.ListServers(ctx, selector)
	return newServerList(servers).of(p.id), err
}

// endsWait returns the error that a failed read ends a wait with: errGone, refused
// credentials, or the deadline of ctx, with the last state. It is nil for any other: a
// failed read is not a failed machine, the wait goes on.
func endsWait(ctx context.Context, err error, state string) error {
	switch {
	case err == nil, errors.Is(err, errGone):
		return err
	case isRefused(err):
		return interruptedError(err)
	case ctx.Err() != nil:
		return lateError(ctx.Err(), state)
	default:
		klog.V(2).InfoS("An API call failed, will be tried again", "state", state, "err", err)
		return nil
	}
}

func (p *poll) state() string {
	switch {
	case p.last == nil:
		return fmt.Sprintf("server %s is not read yet", p.id)
	case p.missing != "":
		return fmt.Sprintf("server %s is %s, but %s", p.id, p.last.Status, p.missing)
	default:
		return fmt.Sprintf("server %s is %s", p.id, p.last.Status)
	}
}

// present reads the server until a read shows it (the poll's last), or proves it gone
// (errGone). The error of the first read is the call's.
func (c *call) present(ctx context.Context, serverID string) (*poll, error) {
	p := c.poll(serverID)
	seen, err := p.next(ctx)
	if err == nil && seen.server() == nil {
		_, err = p.until(ctx, func(*Server) bool { return true })
	}
	return p, err
}

// until reads the server until done says so, or it is proved gone (errGone).
func (p *poll) until(ctx context.Context, done func(*Server) bool) (*Server, error) {
	for {
		seen, err := p.next(ctx)
		if err := endsWait(ctx, err, p.state()); err != nil {
			return nil, err
		}
		if server := seen.server(); server != nil && done(server) {
			return server, nil
		}
	}
}
