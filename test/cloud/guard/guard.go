// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package guard sees all requests of a run, the suite's and the sidecar's: they pass one proxy. It keeps
// a run from costing more than announced and from touching what it has not created, notes what there is
// to delete, by ID, finds answers that the driver cannot live with, and measures the rest for the report.
package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Limits of a run.
const (
	// AtOnce is how many servers may exist at a time, not counting those being deleted.
	AtOnce = 4
	// InAll is how many servers a run may create. The specs create 12; a Machine that cannot get a
	// server may be given more before it is deleted.
	InAll = 18
)

// Guard knows the requests of a run and what they have created. It stops a POST that would exceed the
// limits and a DELETE of a resource that the run has not created. Its context ends then, or when an
// answer breaks a rule.
type Guard struct {
	run string
	// settle is how long the driver lets the API take until a request shows in lists.
	settle time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
	// creating are the POSTs of servers and networks in flight.
	creating sync.WaitGroup

	mu sync.Mutex
	// ended says that the specs are over: nothing is created any more, and the rest is deleted.
	ended bool
	// requests are the POSTs, by kind and name.
	requests map[string]*request
	networks map[string]bool
	servers  map[string]*server
	// parts are the NICs and boot volumes that the API has created for the servers.
	parts    map[string]api.Thing
	findings []string
	notes    notes
}

// request counts the POSTs of a name.
type request struct {
	api.Thing

	// labels are those of the last POST.
	labels map[string]string
	// sent counts the POSTs that were not refused, and shown has the IDs of what they have created.
	sent  int
	shown map[string]bool
	// expected is how many the limits count, until what has not shown will not show any more: a client that
	// sends another POST for a name has looked, and the one before has created nothing.
	expected int
	until    time.Time
}

// New returns a guard of a run. Its context is a child of parent.
func New(parent context.Context, run string, settle time.Duration) *Guard {
	ctx, cancel := context.WithCancelCause(parent)
	return &Guard{
		run: run, settle: settle, ctx: ctx, cancel: cancel, requests: map[string]*request{}, networks: map[string]bool{},
		servers: map[string]*server{}, parts: map[string]api.Thing{}, notes: newNotes(),
	}
}

// Context ends when a limit is reached or a rule is broken; its cause is the reason.
func (g *Guard) Context() context.Context { return g.ctx }

// Err returns why the run has to end, nil if it need not.
func (g *Guard) Err() error { return context.Cause(g.ctx) }

func (g *Guard) refuse(format string, args ...any) error {
	g.cancel(fmt.Errorf("guard: "+format, args...))
	return g.Err()
}

// end notes that the specs are over.
func (g *Guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// admit decides whether a request may be sent, and counts POSTs.
func (g *Guard) admit(e Exchange) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case e.creates():
		return g.admitPost(e)
	case e.Method == "DELETE" && !g.ended && !g.made(e.ID()):
		return g.refuse("%s was asked for, which this run has not made: the request was not sent", e.Method+" "+e.Path)
	case e.Kind() == DeleteServer:
		// From here on a 404 is no wonder, whatever becomes of the request.
		if s := g.servers[e.ID()]; s != nil && s.asked.IsZero() {
			s.asked = e.Begin
			s.byGET.absent, s.byList.absent = time.Time{}, time.Time{} // What was missed before is another matter.
		}
	}
	return nil
}

// made reports whether the run has created the resource with this ID.
func (g *Guard) made(id string) bool {
	_, isPart := g.parts[id]
	return isPart || g.servers[id] != nil || g.networks[id] || id == api.Nobody
}

func (g *Guard) admitPost(e Exchange) error {
	if g.ended {
		return errors.New("guard: the specs are over")
	}
	r := g.request(e)
	r.expected = len(r.shown)
	if e.Kind() == CreateServer {
		live, made := g.count(e.Begin)
		switch {
		case g.Err() != nil:
			return g.Err()
		case made >= InAll:
			return g.refuse("server %s was asked for after %d, the most that a run may make", r.Name, InAll)
		case live >= AtOnce:
			return g.refuse("server %s was asked for beside %d, the most that a run may have at a time", r.Name, AtOnce)
		}
	}
	r.sent, r.expected, r.until, r.labels = r.sent+1, r.expected+1, e.Begin.Add(answerTimeout), e.Sends().Labels
	g.creating.Add(1)
	return nil
}

// count returns how many servers nobody is deleting, and how many were made in all. What was asked for and
// has not shown counts.
func (g *Guard) count(now time.Time) (live, made int) {
	made = len(g.servers)
	for _, s := range g.servers {
		if !s.leaving() {
			live++
		}
	}
	for _, r := range g.requests {
		if open := r.expected - len(r.shown); r.Kind == api.KindServer && open > 0 && now.Before(r.until) {
			live, made = live+open, made+open
		}
	}
	return live, made
}

// Live returns how many servers nobody is deleting.
func (g *Guard) Live() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	live, _ := g.count(time.Now())
	return live
}

// request returns the count of a POST's name.
func (g *Guard) request(e Exchange) *request {
	t := api.Thing{Kind: api.KindServer, Name: e.Sends().Name}
	if e.Kind() == CreateNetwork {
		t.Kind = api.KindNetwork
	}
	r := g.requests[t.Kind+t.Name]
	if r == nil {
		r = &request{Thing: t, shown: map[string]bool{}}
		g.requests[t.Kind+t.Name] = r
	}
	return r
}

// observe notes what was created, shown and deleted, checks it, and measures.
func (g *Guard) observe(e Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.measure(e)
	switch e.Kind() {
	case CreateNetwork, CreateServer:
		g.answered(e)
	case ListNetworks:
		// A network whose POST was not answered shows by its name.
		networks, _ := api.Items[api.Network](e.Answer)
		for _, network := range networks {
			if r := g.requests[api.KindNetwork+network.Name]; r != nil {
				g.know(network.ID, r, e)
			}
		}
	case GetServer:
		g.read(e)
	case ListServers:
		g.listed(e)
	case PatchServer:
		if s := g.servers[e.ID()]; s != nil {
			for key := range e.Sends().Labels {
				s.changed[key] = true
			}
		}
	case DeleteServer:
		if s := g.servers[e.ID()]; s != nil {
			g.note(rowDelete, fmt.Sprintf("%s: %d", s.status, e.Status))
			if e.Succeeded() && s.deleted.IsZero() {
				s.deleted = e.Begin
			}
		}
	}
}

// answered notes the outcome of a POST. An answer with another server says nothing about the one that
// was requested.
func (g *Guard) answered(e Exchange) {
	r, made := g.request(e), api.Item[api.Server](e.Answer)
	r.until = e.End.Add(g.settle)
	switch {
	case made.ID == "" && !e.Succeeded() && !e.Unknown():
		r.sent, r.expected = r.sent-1, r.expected-1
	case made.ID == "":
	case made.Name != "" && made.Name != r.Name:
		g.note(rowOther, "POST showed another one")
	default:
		g.know(made.ID, r, e)
		if s := g.servers[made.ID]; s != nil && s.status == "" {
			s.status = made.Status
		}
		g.noteParts(made)
	}
}

// know takes a resource for one that the request has created.
func (g *Guard) know(id string, r *request, e Exchange) {
	r.shown[id] = true
	switch {
	case r.Kind == api.KindNetwork:
		g.networks[id] = true
		return
	case g.servers[id] == nil:
		g.servers[id] = &server{id: id, name: r.Name, labels: r.labels, changed: map[string]bool{}, posted: e.End}
	}
	if len(r.shown) > r.sent {
		g.find("%d servers of the name %s, after %d POSTs of it: %s",
			len(r.shown), r.Name, r.sent, strings.Join(slices.Sorted(maps.Keys(r.shown)), ", "))
	}
}

// noteParts notes the NICs and the volume that the first answer with both shows: the API has created
// them for the server. What is attached later belongs to whoever attached it.
func (g *Guard) noteParts(seen api.Server) {
	s := g.servers[seen.ID]
	if s == nil || s.parted || len(seen.NICs) == 0 || seen.BootVolume.ID == "" {
		return
	}
	s.parted = true
	for _, nic := range seen.NICs {
		if g.networks[nic.NetworkID] {
			g.parts[nic.ID] = api.Thing{Kind: api.KindNIC, ID: nic.ID, Name: s.name, Network: nic.NetworkID}
		}
	}
	volume := seen.BootVolume.ID
	g.parts[volume] = api.Thing{Kind: api.KindVolume, ID: volume, Name: s.name}
}

// ToRead returns the IDs of servers that only a GET tells more about: those whose parts are not known
// yet, and those that are being deleted.
func (g *Guard) ToRead() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for id, s := range g.servers {
		if s.asked.IsZero() && !s.parted || !s.asked.IsZero() && !s.byGET.gone() {
			ids = append(ids, id)
		}
	}
	return slices.Sorted(slices.Values(ids))
}

// Things returns everything that the run, or the API for it, has created.
func (g *Guard) Things() []api.Thing {
	g.mu.Lock()
	defer g.mu.Unlock()
	things := slices.Collect(maps.Values(g.parts))
	for id, s := range g.servers {
		things = append(things, api.Thing{
			Kind: api.KindServer, ID: id, Name: s.name, Status: s.status, Deleting: !s.asked.IsZero(),
		})
	}
	for id := range g.networks {
		things = append(things, api.Thing{Kind: api.KindNetwork, ID: id, Name: api.NetworkName(g.run)})
	}
	slices.SortFunc(things, func(a, b api.Thing) int { return strings.Compare(a.String(), b.String()) })
	return things
}

// Unanswered returns the kinds and names of POSTs that may have created more than was shown.
func (g *Guard) Unanswered() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for _, r := range g.requests {
		if r.sent > len(r.shown) {
			names = append(names, r.Kind+" "+r.Name)
		}
	}
	return slices.Sorted(slices.Values(names))
}
