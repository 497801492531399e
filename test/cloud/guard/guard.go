// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps a run from costing more than was said, and from touching what it has not
// made. All requests of the suite and of the sidecar pass one door, which sends
// neither one that would make a server too many, nor a DELETE of something that the run has not
// made; the run's context ends then with the reason. The guard's notes say what there is to
// delete, by its ID.
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
	// AtOnce is how many servers may exist that nobody is deleting.
	AtOnce = 4
	// InAll is how many may ever be made. The specs make 12; Machines that cannot have a server
	// may be given another one before they are deleted.
	InAll = 18
)

// Guard notes what the run has made. Its context ends at a limit.
type Guard struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	// creating has the requests for servers that are on their way.
	creating sync.WaitGroup

	mu sync.Mutex
	// ended says that the specs are over: no server is made any more, and what is left goes.
	ended   bool
	network string
	servers map[string]*server
	// requests for servers are counted by name as long as their outcome is not known.
	requests map[string]*request
	// parts are NICs and boot volumes that the API has made for the servers.
	parts map[string]mark.Thing
}

// server is one that the run has made.
type server struct {
	name string
	// deleting says that somebody has asked for its deletion; parted, that its parts are noted.
	deleting, parted bool
}

// request counts the POSTs of a name.
type request struct {
	inFlight int
	// shown are the servers that were shown before the answer came.
	shown int
	// unknown says that the last POST had no answer, or 5xx, and nothing has shown its server.
	unknown bool
}

// New returns a guard whose context ends with the parent, too.
func New(parent context.Context) *Guard {
	ctx, cancel := context.WithCancelCause(parent)
	return &Guard{
		ctx: ctx, cancel: cancel,
		servers: map[string]*server{}, requests: map[string]*request{}, parts: map[string]mark.Thing{},
	}
}

// Context ends at a limit, with the reason as its cause.
func (g *Guard) Context() context.Context { return g.ctx }

// Stop ends the run. The first reason counts.
func (g *Guard) Stop(reason error) { g.cancel(reason) }

// Err returns why the run has to end, nil as long as it has not.
func (g *Guard) Err() error { return context.Cause(g.ctx) }

func (g *Guard) refuse(format string, args ...any) error {
	g.Stop(fmt.Errorf("guard: "+format, args...))
	return g.Err()
}

// end says that the specs are over.
func (g *Guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

var errEnded = errors.New("guard: the specs are over")

// admit says whether a request may be sent, and counts those for servers.
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

// notes says that the run has made what has this ID.
func (g *Guard) notes(id string) bool {
	_, isPart := g.parts[id]
	return isPart || g.servers[id] != nil || id == g.network || id == mark.Nobody
}

// admitServer counts a request. Who asks again for a server of a name has looked, and found that
// the request before it made none.
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

// Observe notes what was made, shown and deleted.
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

// answered notes what has become of a POST. An answer with somebody else's server says nothing
// about the one that was asked for.
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

// shown looks for a server whose request was not answered.
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

// note notes the parts that the first answer shows: the API has made them for the server. What
// somebody attaches later is his.
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

// Unnoted returns the IDs of servers whose parts are not known yet: GET shows them.
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

// Network returns the ID of the run's network, empty before there is one.
func (g *Guard) Network() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.network
}

// Things returns all that the run has made and the API has made for it, the network aside.
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

// Unanswered returns the names of servers that were asked for, with nobody knowing whether the
// API has made them.
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
