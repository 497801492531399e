// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

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
	// isGone says that the server is proved gone.
	isGone bool
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
// and that of the ownership check for one that the call must not use. A read that fails in a wait
// shows nothing.
func (p *poll) next(ctx context.Context) (observation, error) {
	now := p.clock.Now()
	if p.due.After(now) {
		p.begin()
	}
	result := p.read(ctx, p.absence.nextRead(later(p.due, now)))
	p.due = result.Began.Add(pollInterval(p.clock.Since(p.since)))
	if err := p.reads.afterRead(ctx, result.Err, p.state()); err != nil || result.Err != nil {
		return observation{}, err
	}
	seen := result.Value
	seen.began, seen.ended = result.Began, p.clock.Now()
	isFirst := p.absence.row.any.IsZero()
	if p.absence.add(&seen) {
		p.isGone = true
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
// from OpenStack need not have labels.
func (p *poll) reader(kind readKind) *serverReader {
	switch {
	case p.inScope() || kind != byList && !p.fromOpenStack:
		return p.readers.serversOf(p.scope())
	case kind == byList && p.machine != "" && p.readers.project.failLong():
		return p.readers.serversOf(map[string]string{StackitMachineLabel: p.machine})
	default:
		return p.readers.serversOf(nil)
	}
}

// readBy makes a read of the kind.
func (p *poll) readBy(ctx context.Context, kind readKind) coalesce.Result[observation] {
	reader := p.reader(kind)
	result := reader.Read(ctx, p.request(kind))
	if kind == byList && reader == p.readers.serversOf(nil) {
		p.readers.project.note(result.Err)
	}
	return result
}

// request is the next read, by the labels as they were seen last.
func (p *poll) request(kind readKind) coalesce.Request[serverList, observation] {
	get := p.get(!p.absence.accepted.IsZero())
	request := coalesce.Request[serverList, observation]{NotBefore: p.due, Single: safely(get)}
	switch kind {
	case byGet:
	case byList:
		selector := p.selector()
		p.absence.selectable = selector != nil
		if request.Single, request.Lists = safely(p.list(selector)), true; selector == nil {
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
