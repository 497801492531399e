// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
)

// sweep knows what a run has made, and deletes it: the run's network by its name, servers with a name of
// the run that are in this network, and what it has noted by ID, the NICs and boot volumes that the API
// made for those servers. Everything else in the network stays, and so does the network then.
type sweep struct {
	*options
	*project

	// name is the run's.
	name string

	mu sync.Mutex
	// noted are the run's resources by ID. An entry stays when the resource is gone: lists may show it again.
	noted map[string]thing
	// present are the resources of the last look, and those noted since.
	present map[string]thing
	// printed are the lines that were printed: each is printed once.
	printed map[string]bool
}

func (o *options) newSweep(p *project, run string) *sweep {
	return &sweep{
		options: o, project: p, name: run,
		noted: map[string]thing{}, present: map[string]thing{}, printed: map[string]bool{},
	}
}

// add adds a resource of the run.
func (s *sweep) add(t thing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted[t.id], s.present[t.id] = t, t
}

// known returns a noted resource.
func (s *sweep) known(id string) (thing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.noted[id]
	return t, ok
}

// isOurs reports whether a resource was noted.
func (s *sweep) isOurs(id string) bool {
	_, ok := s.known(id)
	return ok
}

// mentions reports whether a text has the run's name or a noted ID.
func (s *sweep) mentions(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isIn := func(id string) bool { return strings.Contains(text, id) }
	return isIn(networkName(s.name)) || slices.ContainsFunc(slices.Collect(maps.Keys(s.noted)), isIn)
}

// view is what the project's lists show of the run.
type view struct {
	servers []iaas.Server
	// parts are the NICs and volumes of the run's servers.
	parts    []thing
	networks []thing
	// foreign are resources of others that keep the run's network or a part in use.
	foreign []thing
}

// ours returns the run's resources, without its networks.
func (v *view) ours() []thing {
	var things []thing
	for i := range v.servers {
		things = append(things, serverThing(&v.servers[i]))
	}
	return append(things, v.parts...)
}

func serverThing(server *iaas.Server) thing {
	return thing{kind: kindServer, id: server.GetId(), name: server.GetName()}
}

// look reads the project's lists. An error means that not all could be read.
func (s *sweep) look(ctx context.Context) (*view, error) {
	networks, err := s.networks(ctx)
	if err != nil {
		return nil, err
	}
	servers, err := s.servers(ctx, "", true)
	if err != nil {
		return nil, err
	}
	v := &view{}
	for i := range networks {
		if networks[i].GetName() == networkName(s.name) {
			t := thing{kind: kindNetwork, id: networks[i].GetId(), name: networks[i].GetName()}
			s.add(t)
			v.networks = append(v.networks, t)
		}
	}
	for i := range servers {
		if s.claims(&servers[i]) {
			v.servers = append(v.servers, servers[i])
		}
	}
	for _, network := range v.networks {
		if err := s.lookAtNICs(ctx, v, network.id); err != nil {
			return nil, err
		}
	}
	if err := s.lookAtVolumes(ctx, v); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.present)
	for _, t := range append(v.ours(), v.networks...) {
		s.present[t.id] = t
	}
	return v, nil
}

// claims reports whether a server is the run's, and notes it with its parts. A server that is CREATING or in
// ERROR may have no NIC.
func (s *sweep) claims(server *iaas.Server) bool {
	if !strings.HasPrefix(server.GetName(), namesBegin(s.name)) || server.GetStatus() == statusDeleted {
		return false
	}
	isInside := func(nic iaas.ServerNetwork) bool { return s.isOurs(nic.GetNetworkId()) }
	nics := server.GetNics()
	if len(nics) > 0 && !slices.ContainsFunc(nics, isInside) {
		s.printOnce("not deleting server %s (%s): it is in another network than the run's", server.GetId(), server.GetName())
		return false
	}
	s.add(serverThing(server))
	for _, nic := range nics {
		if isInside(nic) {
			s.add(thing{kind: kindNIC, id: nic.GetNicId(), name: server.GetName(), network: nic.GetNetworkId()})
		}
	}
	volume := server.GetBootVolume()
	if id := volume.GetId(); id != "" {
		s.add(thing{kind: kindVolume, id: id, name: server.GetName()})
	}
	return true
}

// lookAtNICs adds the NICs in a network of the run. A NIC is the run's if it was noted or is attached to a
// server that was, unless it is attached to another server now.
func (s *sweep) lookAtNICs(ctx context.Context, v *view, network string) error {
	nics, err := s.nics(ctx, network)
	if isGone(err) { // The network has gone since it was listed.
		return nil
	}
	if err != nil {
		return err
	}
	for i := range nics {
		nic := &nics[i]
		t, isNoted := s.known(nic.GetId())
		if !isNoted {
			t = thing{kind: kindNIC, id: nic.GetId(), name: nic.GetName(), network: network}
		}
		switch device := nic.GetDevice(); {
		case nic.GetType() == "gateway" || nic.GetType() == "metadata": // the network's own
		case device != "" && !s.isOurs(device):
			v.foreign = append(v.foreign, thing{kind: kindServer, id: device})
		case device != "" || isNoted:
			v.parts = append(v.parts, t)
		default:
			v.foreign = append(v.foreign, t)
		}
	}
	return nil
}

// lookAtVolumes adds the boot volumes that were noted. One that is attached to a server of others stays.
func (s *sweep) lookAtVolumes(ctx context.Context, v *view) error {
	volumes, err := s.volumes(ctx)
	for i := range volumes {
		t, isNoted := s.known(volumes[i].GetId())
		switch holder := volumes[i].GetServerId(); {
		case !isNoted:
		case holder != "" && !s.isOurs(holder):
			v.foreign = append(v.foreign, thing{kind: kindServer, id: holder})
		default:
			v.parts = append(v.parts, t)
		}
	}
	return err
}

// printOnce prints a line that this sweep has not printed before.
func (s *sweep) printOnce(format string, args ...any) {
	text := oneLine(fmt.Sprintf(format, args...))
	s.mu.Lock()
	isNew := !s.printed[text]
	s.printed[text] = true
	s.mu.Unlock()
	if isNew {
		s.say("sweep: %s", text)
	}
}

// awaitNothing waits until lists show no server of the run, and then for NICs and volumes, a few times as
// long as lists may lag. The error names what is left.
func (s *sweep) awaitNothing(ctx context.Context) error {
	lookFor := func(kinds ...string) func(context.Context) (string, bool) {
		return func(ctx context.Context) (string, bool) {
			v, err := s.look(ctx)
			if err != nil {
				return describe(err), false
			}
			left := ofKinds(v.ours(), kinds...)
			return texts(left), len(left) == 0
		}
	}
	if err := s.await(ctx, s.patience, lookFor(kindServer)); err != nil {
		return fmt.Errorf("servers are left: %w", err)
	}
	if err := s.await(ctx, 4*s.settle, lookFor(kindServer, kindNIC, kindVolume)); err != nil {
		return fmt.Errorf("NICs or volumes are left without their server: %w", err)
	}
	return nil
}

// delete deletes the run's servers, then what the API keeps of them, and its networks once lists have shown
// nothing for as long as they may lag: a request that was in flight may still make a server. It returns what
// it had to delete, without the networks.
func (s *sweep) delete(ctx context.Context) (deleted []thing, err error) {
	asked := map[string]time.Time{}
	var cleanSince time.Time
	for {
		began := time.Now()
		v, err := s.look(ctx)
		switch {
		case err != nil:
			s.printOnce("cannot read all of the run's resources, trying again: %s", describe(err))
			cleanSince = time.Time{}
		case len(v.servers) > 0 || len(v.parts) > 0:
			cleanSince = time.Time{}
			deleted = append(deleted, s.remove(ctx, asked, due(v))...)
		case cleanSince.IsZero():
			cleanSince = began
		case began.Sub(cleanSince) < s.settle:
		case len(v.foreign) > 0:
			return deleted, fmt.Errorf("the network stays, because it is used by resources of others: %s", texts(v.foreign))
		case len(v.networks) == 0:
			return deleted, nil
		default:
			s.remove(ctx, asked, v.networks)
		}
		if err := pause(ctx, s.poll); err != nil {
			return deleted, err
		}
	}
}

// due returns what can be deleted now: servers first, since the API deletes most of their parts with them.
func due(v *view) []thing {
	if len(v.servers) > 0 {
		return ofKinds(v.ours(), kindServer)
	}
	return v.parts
}

// ofKinds returns the things of these kinds.
func ofKinds(things []thing, kinds ...string) []thing {
	return slices.DeleteFunc(things, func(t thing) bool { return !slices.Contains(kinds, t.kind) })
}

// remove sends a DELETE for each thing, unless the last one was a moment ago. It returns those for which it
// was the first.
func (s *sweep) remove(ctx context.Context, asked map[string]time.Time, things []thing) (first []thing) {
	const pollsBetween = 4
	for _, t := range things {
		last, again := asked[t.id]
		if again && time.Since(last) < pollsBetween*s.poll {
			continue
		}
		asked[t.id] = time.Now()
		if !again {
			first = append(first, t)
		}
		s.printOnce("deletes %s", t)
		if err := s.project.delete(ctx, t); err != nil && !isGone(err) {
			s.printOnce("DELETE of %s: %s", t, describe(err))
		}
	}
	return first
}

// finish deletes what is left of the run. The last lines will name what could not be deleted.
func (s *sweep) finish(ctx context.Context) (deleted []thing, err error) {
	deleted, err = s.delete(ctx)
	if err == nil {
		return deleted, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.present)) {
		line := "LEFT: " + s.present[id].String()
		if s.present[id].kind == kindVolume { // It has no name by which a later sweep would find it.
			line += ": stackit volume delete " + id
		}
		s.last = append(s.last, line)
	}
	s.last = append(s.last, "Try again: "+again(s.name))
	return deleted, fmt.Errorf("sweep: %w", err)
}

// sweepRuns deletes what is left of runs that are older than an hour, and of the run that the settings name.
func (o *options) sweepRuns(ctx context.Context) error {
	p, err := newProject(o.settings, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errNothingMade, err)
	}
	ctx, cancel := withLimit(ctx, o.limit)
	defer cancel()
	o.say("Deleting what runs have left %s.", o.where())
	runs, err := oldRuns(ctx, p)
	if run := o.settings.sweepRun; run != "" {
		runs[run] = true
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		_, problem := o.newSweep(p, run).finish(ctx)
		err = errors.Join(err, problem)
	}
	return err
}

// oldRuns returns the runs of which networks and servers are left, and which are over by their age.
func oldRuns(ctx context.Context, p *project) (map[string]bool, error) {
	runs := map[string]bool{}
	add := func(name string) {
		if run, ok := runOf(name); ok && isOld(run, time.Now()) {
			runs[run] = true
		}
	}
	networks, networksErr := p.networks(ctx)
	for i := range networks {
		add(networks[i].GetName())
	}
	servers, serversErr := p.servers(ctx, "", false)
	for i := range servers {
		add(servers[i].GetName())
	}
	return runs, errors.Join(networksErr, serversErr)
}
