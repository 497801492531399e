// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
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
// and the error of the door for one that the call must not use. A read that fails in a wait
// shows nothing.
func (p *poll) next(ctx context.Context) (observation, error) {
	now := p.clock.Now()
	if p.due.After(now) {
		p.begin()
	}
	kind := p.absence.nextRead(later(p.due, now))
	result := p.reader(kind).Read(ctx, p.request(kind))
	p.due = result.Began.Add(pollInterval(p.clock.Since(p.since)))
	if err := p.afterRead(ctx, result.Err, p.state()); err != nil || result.Err != nil {
		return observation{}, err
	}
	seen := result.Value
	seen.began, seen.ended = result.Began, p.clock.Now()
	if p.absence.add(&seen) {
		p.ledger.ServerGone(p.key, p.id)
		p.meters.gone(p.class, p.id)
		return observation{}, errGone
	}
	if due, ok := p.absence.nextSign(seen.ended); ok {
		p.due = due
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
		absenceTells := !p.absence.accepted.IsZero() && p.inScope()
		request.Pick = func(list serverList, began time.Time) (observation, bool) {
			seen := list.of(p.id)
			return seen, seen.server() != nil || absenceTells && p.absence.countsList(began)
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
