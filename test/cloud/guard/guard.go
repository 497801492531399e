// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package guard sees all requests of a run, the suite's and the sidecar's: they pass one proxy. It stops
// a DELETE of what the run has not created and a POST of more servers than announced, notes what there is
// to delete, by ID, ends the run at answers that the driver cannot live with, and measures the rest for
// the report.
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

const (
	// MaxServers is how many servers a run may create. The specs create 9; a Machine that cannot get a
	// server may be given more before it is deleted.
	MaxServers = 18
	// unexpectedAbsence is how long GET must miss a server that nobody deletes, from pkg/provider/server.go.
	unexpectedAbsence = 15 * time.Second
)

// Guard knows the requests of a run and what they have created. Its context ends when it stops a request,
// and when answers break a rule of the driver's. One answer never does.
type Guard struct {
	run string
	// settle is how long the driver lets lists lag.
	settle time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
	// creating are the POSTs of servers and networks in flight.
	creating sync.WaitGroup

	mu sync.Mutex
	// ended says that the specs are over: nothing is created any more, and the rest is deleted.
	ended bool
	// posts counts the POSTs of servers that were not refused, by name.
	posts   map[string]int
	servers map[string]*server
	// others are the network, and the NICs and boot volumes that the API has created for the servers.
	others map[string]api.Thing
	rows   map[string]counts
}

// server is what the answers have said of a server that the run has created.
type server struct {
	id, name, status, errorMessage string
	// parted says that its NICs and its boot volume are noted.
	parted bool
	// posted is when the first answer showed it; asked, when the first DELETE was sent; deleted, when the
	// first that was accepted was.
	posted, asked, deleted time.Time
	// spans are measured for rows of the report.
	spans map[string]span
	// missing is when reads of a kind began, in a row, not to show it.
	missing map[string]time.Time
	// absent counts the GETs in a row that did not show it.
	absent int
}

// New returns a guard of a run. Its context is a child of parent.
func New(parent context.Context, run string, settle time.Duration) *Guard {
	ctx, cancel := context.WithCancelCause(parent)
	return &Guard{
		run: run, settle: settle, ctx: ctx, cancel: cancel, posts: map[string]int{},
		servers: map[string]*server{}, others: map[string]api.Thing{}, rows: map[string]counts{},
	}
}

// Context ends when a request is stopped or a rule is broken; its cause is the reason.
func (g *Guard) Context() context.Context { return g.ctx }

// Err returns why the run has to end, nil if it need not.
func (g *Guard) Err() error { return context.Cause(g.ctx) }

// stop ends the run, and returns the reason.
func (g *Guard) stop(format string, args ...any) error {
	g.cancel(fmt.Errorf("guard: "+format, args...))
	return g.Err()
}

// end notes that the specs are over.
func (g *Guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// admit decides whether a request may be sent.
func (g *Guard) admit(e Exchange) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.creates() {
		return g.admitPost(e)
	}
	switch s := g.servers[e.ID()]; {
	case e.Method == "DELETE" && s == nil && !g.ended && g.others[e.ID()].ID == "":
		return g.stop("%s %s was asked for, which this run has not made: the request was not sent", e.Method, e.Path)
	case e.Kind() == DeleteServer && s != nil && s.asked.IsZero():
		s.asked = e.Begin // From here on a 404 is no wonder, whatever becomes of the request.
	}
	return nil
}

func (g *Guard) admitPost(e Exchange) error {
	switch isServer, name := e.Kind() == CreateServer, e.SentName(); {
	case g.ended:
		return errors.New("guard: the specs are over")
	case g.Err() != nil:
		return g.Err()
	case isServer && len(g.servers) >= MaxServers:
		return g.stop("server %s was asked for after %d, the most that a run may make", name, MaxServers)
	case isServer:
		g.posts[name]++
	}
	g.creating.Add(1)
	return nil
}

// observe notes what was created, shown and deleted, checks it, and measures.
func (g *Guard) observe(e Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.measure(e)
	s, seen := g.servers[e.ID()], api.Item[api.Server](e.Answer)
	switch e.Kind() {
	case CreateNetwork, ListNetworks:
		g.noteNetworks(e)
	case CreateServer:
		if !e.Succeeded() && !e.Unknown() {
			g.posts[e.SentName()]--
		} else if s := g.known(seen, e); s != nil {
			s.status = seen.Status
		}
	case GetServer:
		if s != nil {
			g.read(s, seen, e)
		}
	case ListServers:
		g.listed(e)
	case DeleteServer:
		if s != nil {
			g.note(rowDelete, fmt.Sprintf("%s: %d", s.status, e.Status))
			if e.Succeeded() && s.deleted.IsZero() {
				s.deleted = e.Begin
			}
		}
	}
}

// noteNetworks notes the run's network: one whose POST was not answered shows by its name.
func (g *Guard) noteNetworks(e Exchange) {
	networks, _ := api.Items[api.Network](e.Answer)
	for _, n := range append(networks, api.Item[api.Network](e.Answer)) {
		if n.Name == api.NetworkName(g.run) {
			g.others[n.ID] = api.Thing{Kind: api.KindNetwork, ID: n.ID, Name: n.Name}
		}
	}
}

// known returns the server that an answer shows, nil if the run has not created it: it is one by its name.
func (g *Guard) known(seen api.Server, e Exchange) *server {
	if s := g.servers[seen.ID]; s != nil || seen.ID == "" || g.posts[seen.Name] == 0 {
		return s
	}
	s := &server{
		id: seen.ID, name: seen.Name, posted: e.End, spans: map[string]span{}, missing: map[string]time.Time{},
	}
	g.servers[s.id] = s
	var same []string
	for _, other := range g.servers {
		if other.name == s.name {
			same = append(same, other.id)
		}
	}
	if posts := g.posts[s.name]; len(same) > posts {
		slices.Sort(same)
		_ = g.stop("%d servers of the name %s, after %d POSTs of it: %s", len(same), s.name, posts, strings.Join(same, ", "))
	}
	return s
}

// read checks a GET of a server.
func (g *Guard) read(s *server, seen api.Server, e Exchange) {
	asked := !s.asked.IsZero()
	switch {
	case e.Absent(asked) || seen.Status == api.StatusDeleted:
		s.absent++
		s.measure(rowGET, e, false)
		if asked {
			s.measure(rowGoneGET, e, true)
			g.note(rowAfter, fmt.Sprint(e.Status))
		} else if !s.spans[rowGET].first.IsZero() {
			g.note(rowOdd404, "404 to a GET")
			g.missed(s, GetServer, e, unexpectedAbsence)
		}
	case seen.ID == s.id:
		s.absent = 0
		s.spans[rowGoneGET] = span{last: e.Begin}
		s.measure(rowGET, e, true)
		g.shown(s, seen, GetServer, e)
	}
}

// listed checks a list of servers. Those with the run's selector or with none have to show all of the run.
func (g *Guard) listed(e Exchange) {
	selector := e.Query.Get("label_selector")
	servers, ok := api.Items[api.Server](e.Answer)
	isShown := map[string]bool{}
	for _, seen := range servers {
		if seen.Status == api.StatusDeleted {
			continue // as the driver does
		}
		s := g.known(seen, e)
		if s == nil {
			g.noteStranger(seen)
			continue
		}
		isShown[s.id] = true
		s.spans[rowGoneList] = span{last: e.Begin}
		s.measure(rowList, e, true)
		g.shown(s, seen, "list "+selector, e)
	}
	if !ok || selector != "" && selector != api.Selector(g.run) {
		return
	}
	for _, s := range g.servers {
		switch {
		case isShown[s.id] || e.Begin.Before(s.posted):
		case s.asked.IsZero():
			s.measure(rowList, e, false)
			g.missed(s, "list "+selector, e, g.settle)
		default:
			s.measure(rowGoneList, e, true)
		}
	}
}

// shown notes a server as a read shows it.
func (g *Guard) shown(s *server, seen api.Server, read string, e Exchange) {
	s.status = seen.Status
	delete(s.missing, read)
	g.noteParts(s, seen)
	g.noteShown(s, seen, e)
	if s.deleted.IsZero() {
		s.measure(rowBoot, e, seen.Status == api.StatusActive)
	} else {
		s.measure(rowDeleting, e, seen.Status == api.StatusDeleting)
	}
}

// missed ends the run if a read of a kind has not shown a server for too long, and nobody deletes it.
func (g *Guard) missed(s *server, read string, e Exchange, limit time.Duration) {
	since, isMissing := s.missing[read]
	if !isMissing {
		since, s.missing[read] = e.Begin, e.Begin
	}
	if late := e.Begin.Sub(since); late >= limit {
		_ = g.stop("%s has not shown server %s (%s) for %s, and nobody has deleted it", read, s.id, s.name, late)
	}
}

// noteParts notes the boot volume, and the NICs that the first answer with both shows: the API has created
// them for the server. What is attached later belongs to whoever attached it. A server that ends in ERROR
// may have a volume alone.
func (g *Guard) noteParts(s *server, seen api.Server) {
	if s.parted || seen.BootVolume.ID == "" {
		return
	}
	s.parted = len(seen.NICs) > 0
	for _, t := range seen.Parts(func(network string) bool { return g.others[network].ID != "" }) {
		g.others[t.ID] = t
	}
}

// ToRead returns the IDs of servers that only a GET tells more about: those whose parts are not known
// yet, those that the last GET did not show, since one answer says nothing, and those that are being deleted,
// until two GETs in a row do not show them.
func (g *Guard) ToRead() (ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, s := range g.servers {
		if s.asked.IsZero() && (!s.parted || s.absent > 0) || !s.asked.IsZero() && s.absent < 2 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Things returns everything that the run, or the API for it, has created.
func (g *Guard) Things() []api.Thing {
	g.mu.Lock()
	defer g.mu.Unlock()
	things := slices.Collect(maps.Values(g.others))
	for id, s := range g.servers {
		things = append(things, api.Thing{
			Kind: api.KindServer, ID: id, Name: s.name, Status: s.status, Deleting: !s.asked.IsZero(),
		})
	}
	return things
}

// Failed returns what is known of the server of this name that ended in ERROR, if one did.
func (g *Guard) Failed(name string) (text string, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.servers {
		if s.name == name && s.status == api.StatusError {
			return fmt.Sprintf("server %s ended in ERROR: %q", s.id, s.errorMessage), true
		}
	}
	return "", false
}
