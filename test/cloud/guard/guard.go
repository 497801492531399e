// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps a run from costing more than announced, and from touching what it has not
// created. All requests of the suite and the sidecar pass one proxy. It stops a POST that would
// exceed the limits and a DELETE of a resource that the run has not created, and ends the run's
// context with the reason. The guard's notes say what there is to delete, by ID.
package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// Limits of a run.
const (
	// AtOnce is how many servers may exist at a time, not counting those being deleted.
	AtOnce = 4
	// InAll is how many servers a run may create. The specs create 12; a Machine that cannot get a
	// server may be given more before it is deleted.
	InAll = 18
)

// Guard notes what the run has created. Its context ends when a limit is reached.
type Guard struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	// creating are the POSTs of servers in flight.
	creating sync.WaitGroup

	mu sync.Mutex
	// ended says that the specs are over: no server is created any more, and the rest is deleted.
	ended   bool
	network string
	servers map[string]*server
	// requests are the POSTs of servers by name whose outcome is unknown.
	requests map[string]*request
	// parts are the NICs and boot volumes that the API has created for the servers.
	parts map[string]mark.Thing
}

// server is a server that the run has created.
type server struct {
	name string
	// deleting says that its deletion was requested; parted, that its parts are noted.
	deleting, parted bool
}

// request counts the POSTs of a name.
type request struct {
	inFlight int
	// shown are the servers that reads have shown before the answer came.
	shown int
	// unknown says that the last POST had no answer, or 5xx, and nothing has shown its server.
	unknown bool
}

// New returns a guard. Its context is a child of parent.
func New(parent context.Context) *Guard {
	ctx, cancel := context.WithCancelCause(parent)
	return &Guard{
		ctx: ctx, cancel: cancel,
		servers: map[string]*server{}, requests: map[string]*request{}, parts: map[string]mark.Thing{},
	}
}

// Context ends when a limit is reached; its cause is the reason.
func (g *Guard) Context() context.Context { return g.ctx }

// Stop ends the run. The first reason counts.
func (g *Guard) Stop(reason error) { g.cancel(reason) }

// Err returns why the run has to end, nil if it need not.
func (g *Guard) Err() error { return context.Cause(g.ctx) }

func (g *Guard) refuse(format string, args ...any) error {
	g.Stop(fmt.Errorf("guard: "+format, args...))
	return g.Err()
}

// end notes that the specs are over.
func (g *Guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

var errEnded = errors.New("guard: the specs are over")

// admit decides whether a request may be sent, and counts POSTs of servers.
func (g *Guard) admit(e Exchange) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case e.Kind() == CreateServer:
		return g.admitServer(e.SentName())
	case e.Method == "DELETE" && !g.ended && !g.notes(e.ID()):
		return g.refuse("%s was asked for, which this run has not made: the request was not sent", e.Method+" "+e.Path)
	}
	return nil
}

// notes reports whether the run has created the resource with this ID.
func (g *Guard) notes(id string) bool {
	_, isPart := g.parts[id]
	return isPart || g.servers[id] != nil || id == g.network || id == mark.Nobody
}

// admitServer counts a POST. A client that sends another POST for the same name has looked, and found
// that the one before created no server.
func (g *Guard) admitServer(name string) error {
	if g.ended {
		return errEnded
	}
	r := g.requests[name]
	if r == nil {
		r = &request{}
		g.requests[name] = r
	}
	r.unknown = false
	live, made := 0, len(g.servers)
	for _, server := range g.servers {
		if !server.deleting {
			live++
		}
	}
	for _, other := range g.requests {
		open := other.inFlight - other.shown
		if other.unknown {
			open++
		}
		live, made = live+open, made+open
	}
	switch {
	case g.Err() != nil:
		return g.Err()
	case made >= InAll:
		return g.refuse("server %s was asked for after %d, the most that a run may make", name, InAll)
	case live >= AtOnce:
		return g.refuse("server %s was asked for beside %d, the most that a run may have at a time", name, AtOnce)
	}
	r.inFlight++
	g.creating.Add(1)
	return nil
}

// Begun implements Observer.
func (g *Guard) Begun(Exchange) {}

// Observe notes what was created, shown and deleted.
func (g *Guard) Observe(e Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch e.Kind() {
	case CreateNetwork:
		if id := e.Server().ID; id != "" && g.network == "" {
			g.network = id
		}
	case CreateServer:
		g.answered(e)
	case DeleteServer:
		if server := g.servers[e.ID()]; server != nil && e.Succeeded() {
			server.deleting = true
		}
	case GetServer:
		g.shown(e.Server())
	case ListServers:
		shown, _ := e.Servers()
		for _, server := range shown {
			g.shown(server)
		}
	}
}

// answered notes the outcome of a POST. An answer with another server says nothing about the one that
// was requested.
func (g *Guard) answered(e Exchange) {
	name, made := e.SentName(), e.Server()
	r := g.requests[name]
	if r == nil {
		return
	}
	r.inFlight--
	switch {
	case made.ID != "" && (made.Name == "" || made.Name == name):
		if g.servers[made.ID] != nil {
			r.shown-- // A list was faster.
		}
		g.know(made.ID, name)
		g.note(made)
	case !e.Succeeded() && !e.Unknown():
	case r.shown > 0:
		r.shown--
	default:
		r.unknown = true
	}
}

func (g *Guard) know(id, name string) {
	if g.servers[id] == nil {
		g.servers[id] = &server{name: name}
	}
}

// shown looks for servers whose POST was not answered.
func (g *Guard) shown(seen api.Server) {
	if r := g.requests[seen.Name]; r != nil && g.servers[seen.ID] == nil {
		switch {
		case r.unknown:
			r.unknown = false
			g.know(seen.ID, seen.Name)
		case r.inFlight > r.shown:
			r.shown++
			g.know(seen.ID, seen.Name)
		}
	}
	g.note(seen)
}

// note notes the parts that the first answer shows: the API has created them for the server. What is
// attached later belongs to whoever attached it.
func (g *Guard) note(seen api.Server) {
	server := g.servers[seen.ID]
	if server == nil || server.parted || len(seen.NICs) == 0 || seen.BootVolume.ID == "" {
		return
	}
	server.parted = true
	for _, nic := range seen.NICs {
		if nic.NetworkID == g.network {
			g.parts[nic.ID] = mark.Thing{Kind: mark.KindNIC, ID: nic.ID, Name: server.name}
		}
	}
	volume := seen.BootVolume.ID
	g.parts[volume] = mark.Thing{Kind: mark.KindVolume, ID: volume, Name: server.name}
}

// Unnoted returns the IDs of servers whose parts are not known yet. A GET shows them.
func (g *Guard) Unnoted() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for id, server := range g.servers {
		if !server.parted && !server.deleting {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Network returns the ID of the run's network, "" before it exists.
func (g *Guard) Network() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.network
}

// Things returns everything that the run, or the API for it, has created, except the network.
func (g *Guard) Things() []mark.Thing {
	g.mu.Lock()
	defer g.mu.Unlock()
	things := slices.Collect(maps.Values(g.parts))
	for id, server := range g.servers {
		things = append(things, mark.Thing{Kind: mark.KindServer, ID: id, Name: server.name, Deleting: server.deleting})
	}
	slices.SortFunc(things, func(a, b mark.Thing) int { return strings.Compare(a.String(), b.String()) })
	return things
}

// Unanswered returns the names of servers whose POST has an unknown outcome.
func (g *Guard) Unanswered() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name, r := range g.requests {
		if r.unknown || r.inFlight > r.shown {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
