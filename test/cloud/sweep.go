// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// sweep deletes what a run of the suite has created: its networks, the servers in them that have a name of
// the run, and what the run has noted by ID, whatever its name. It reports anything else in the networks, and
// then keeps them.
type sweep struct {
	*options

	api *api.Client
	// name is the run's.
	name string
	// noted are the resources of the run, in the order they were found.
	noted []*thing
	// strangers are the NICs in its networks that are not the run's.
	strangers []api.Thing
	// told are the lines of the output: each is written once.
	told map[string]bool
}

// thing is a resource that the run has created.
type thing struct {
	api.Thing

	// shown says that a GET has shown the resource; hidden, that the account may not read it.
	shown, hidden bool
	// holder is the ID of the server that a NIC or a volume is attached to.
	holder string
	// absent counts the answers in a row that did not show it.
	absent int
	// asked is when the last DELETE was sent; removed says that one was accepted, or may have been.
	asked   time.Time
	removed bool
	// refused says that the last DELETE was.
	refused bool
}

// gone reports whether two answers in a row did not show the resource: one proves nothing.
func (t *thing) gone() bool { return t.absent >= 2 }

func (o *options) newSweep(client *api.Client, run string) *sweep {
	return &sweep{options: o, api: client, name: run, told: map[string]bool{}}
}

// note adds resources that are known by ID.
func (s *sweep) note(things ...api.Thing) {
	for _, t := range things {
		if known := s.known(t.ID); known != nil {
			known.Deleting = known.Deleting || t.Deleting
		} else {
			s.noted = append(s.noted, &thing{Thing: t})
		}
	}
}

// known returns the noted resource with this ID, nil if there is none.
func (s *sweep) known(id string) *thing {
	if i := slices.IndexFunc(s.noted, func(t *thing) bool { return t.ID == id }); i >= 0 {
		return s.noted[i]
	}
	return nil
}

// present returns the noted resources that are not known to be gone.
func (s *sweep) present(kinds ...string) (present []*thing) {
	for _, t := range s.noted {
		if slices.Contains(kinds, t.Kind) && !t.gone() {
			present = append(present, t)
		}
	}
	return present
}

// isNamed reports whether a server or a NIC has a name of the run.
func (s *sweep) isNamed(name string) bool { return strings.HasPrefix(name, api.Name(s.name, "")) }

// tellOnce prints a line that the sweep has not printed before.
func (s *sweep) tellOnce(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	if !s.told[text] {
		s.told[text] = true
		s.say("sweep: %s", text)
	}
}

// look reads what is left of the run. An error means that not all could be read. Where lists are refused, a
// 403 for a resource says nothing: it is not read then.
func (s *sweep) look(ctx context.Context) error {
	networks, problem := s.api.Networks(ctx)
	servers, err := s.api.Servers(ctx, "")
	if err = errors.Join(problem, err); err != nil {
		return err
	}
	var problems []error
	for _, network := range networks {
		if network.Name == api.NetworkName(s.name) {
			s.show(api.Thing{Kind: api.KindNetwork, ID: network.ID, Name: network.Name})
		}
	}
	for _, server := range servers {
		if !s.isNamed(server.Name) || server.Status == api.StatusDeleted {
			continue
		}
		if known := s.known(server.ID); known != nil {
			known.absent = 0
		} else {
			problems = append(problems, s.claim(ctx, server.ID))
		}
	}
	for _, t := range s.present(api.KindServer, api.KindVolume, api.KindNetwork) {
		problems = append(problems, s.read(ctx, t))
	}
	problems = append(problems, s.readNICs(ctx))
	if len(s.present(api.KindServer)) > 0 {
		// Of a server that is new, a part may not show yet.
		for _, part := range s.present(api.KindNIC, api.KindVolume) {
			part.absent = 0
		}
	}
	return errors.Join(problems...)
}

// show notes a resource that a list shows.
func (s *sweep) show(t api.Thing) {
	s.note(t)
	s.known(t.ID).absent = 0
}

// claim notes a server with a name of the run, and its parts, if it is in a network of the run's. A
// server in CREATING or ERROR may have no NIC.
func (s *sweep) claim(ctx context.Context, id string) error {
	server, err := s.api.Server(ctx, id)
	if err != nil || server == nil {
		return err
	}
	parts := server.Parts(func(id string) bool {
		network := s.known(id)
		return network != nil && network.Kind == api.KindNetwork
	})
	isNIC := func(t api.Thing) bool { return t.Kind == api.KindNIC }
	if len(server.NICs) > 0 && !slices.ContainsFunc(parts, isNIC) {
		s.tellOnce("leaves server %s (%s): it is in another network than the run's", id, server.Name)
		return nil
	}
	s.note(append([]api.Thing{{Kind: api.KindServer, ID: id, Name: server.Name}}, parts...)...)
	return nil
}

// read reads a resource by its ID: a boot volume, for one, may have any name. NICs are read from lists.
func (s *sweep) read(ctx context.Context, t *thing) error {
	answer, err := s.api.Do(ctx, http.MethodGet, t.Path(), nil)
	found := api.Item[struct{ ID, Status, ServerID string }](answer)
	switch {
	case err != nil:
		return err
	case answer.Absent(t.shown || t.Deleting) || found.Status == api.StatusDeleted:
		t.absent++
	case answer.Status == http.StatusForbidden:
		t.hidden = true
	case found.ID == "":
		return answer.Err("GET " + t.Path())
	default:
		t.shown, t.hidden, t.absent, t.Status = true, false, 0, found.Status
		t.holder = found.ServerID
	}
	return nil
}

// readNICs reads the NICs of the run's networks from their lists, as every account may that the driver works
// with. A list says who has a NIC: what the run does not know of is not deleted.
func (s *sweep) readNICs(ctx context.Context) error {
	isShown := map[string]bool{}
	s.strangers = nil
	for _, network := range s.present(api.KindNetwork) {
		if network.Deleting {
			continue // its NICs are not there any more
		}
		nics, err := s.api.NICs(ctx, network.ID)
		if err != nil {
			return err
		}
		for _, nic := range nics {
			t := api.Thing{Kind: api.KindNIC, ID: nic.ID, Name: nic.Name, Network: network.ID}
			switch {
			case nic.Type == "gateway" || nic.Type == "metadata": // The network's own.
			case s.known(nic.ID) != nil || s.isNamed(nic.Name) && nic.Device == "":
				s.show(t)
				s.known(nic.ID).holder, isShown[nic.ID] = nic.Device, true
			default:
				s.strangers = append(s.strangers, t)
			}
		}
	}
	for _, t := range s.present(api.KindNIC) {
		if !isShown[t.ID] {
			t.absent++
		}
	}
	return nil
}

// isHeld reports whether a resource is attached to a server that is not the run's: it stays. The API deletes
// a NIC that is attached.
func (s *sweep) isHeld(t *thing) bool { return t.holder != "" && s.known(t.holder) == nil }

// left returns the run's resources of these kinds that are not known to be gone, except what the account may
// not read.
func (s *sweep) left(kinds ...string) []api.Thing { return s.list(false, kinds) }

// unreadable returns what the account may not read: nobody knows whether it is left.
func (s *sweep) unreadable() []api.Thing { return s.list(true, api.Kinds) }

func (s *sweep) list(hidden bool, kinds []string) (things []api.Thing) {
	for _, t := range s.present(kinds...) {
		if t.hidden == hidden {
			things = append(things, t.Thing)
		}
	}
	return things
}

// delete deletes what is left of the run: its servers, then what the API keeps of them, then its networks.
// It returns what it found, without the networks. Its error says why it could not delete what is left.
func (s *sweep) delete(ctx context.Context) (found []api.Thing, err error) {
	defer func() {
		for _, t := range s.noted {
			if t.removed && t.Kind != api.KindNetwork {
				found = append(found, t.Thing)
			}
		}
	}()
	var clean time.Time
	for {
		began := time.Now()
		err := s.look(ctx)
		s.remove(ctx, api.KindServer)
		switch {
		case err != nil: // who holds a part may not be known
			if ctx.Err() == nil {
				s.tellOnce("not all could be read: %v", err)
			}
		case len(s.present(api.KindServer)) == 0:
			s.remove(ctx, api.KindNIC, api.KindVolume)
		}
		switch {
		case err != nil || slices.ContainsFunc(s.present(api.PartKinds...), s.isToGo):
			clean = time.Time{}
		case clean.IsZero():
			clean = began
		case began.Sub(clean) >= s.settle:
			if gone, err := s.removeNetworks(ctx); gone || err != nil {
				return nil, err
			}
		}
		if err := api.Pause(ctx, s.poll); err != nil {
			return nil, err
		}
	}
}

// isToGo reports whether the networks wait for a resource in them: for what may not be read, until two DELETEs
// say that it is gone, or one is refused.
func (s *sweep) isToGo(t *thing) bool { return !s.isHeld(t) && (!t.hidden || !t.refused) }

// removeNetworks deletes the networks if nothing else is in them, and reports whether they are gone.
func (s *sweep) removeNetworks(ctx context.Context) (gone bool, err error) {
	for _, t := range s.present(api.PartKinds...) {
		if s.isHeld(t) {
			return false, fmt.Errorf("sweep: the network stays, since %s is attached to server %s, which is not the run's",
				t, t.holder)
		}
	}
	if len(s.strangers) > 0 {
		return false, fmt.Errorf("sweep: the network stays, since %s in it is not the run's", s.strangers[0])
	}
	networks := s.present(api.KindNetwork)
	if len(s.left(api.PartKinds...)) == 0 {
		s.remove(ctx, api.KindNetwork)
	}
	return len(networks) == 0, nil
}

// askAgain is how many times poll passes from one DELETE to the next.
const askAgain = 10

// remove sends a DELETE for each resource of these kinds, unless the last one was a moment ago. No other
// function of a sweep does.
func (s *sweep) remove(ctx context.Context, kinds ...string) {
	for _, t := range s.present(kinds...) {
		if s.isHeld(t) || time.Since(t.asked) < askAgain*s.poll {
			continue
		}
		t.asked = time.Now()
		s.tellOnce("deletes %s", t)
		answer, err := s.api.Do(ctx, http.MethodDelete, t.Path(), nil)
		t.refused = false
		switch {
		case answer.Succeeded():
			t.Deleting, t.removed = true, true
		case answer.Unknown():
			t.Deleting, t.removed = t.Deleting || !t.hidden, t.removed || !t.hidden && ctx.Err() == nil
			s.tellOnce("DELETE of %s answered %d: %v", t, answer.Status, err)
		case t.hidden && answer.Absent(false):
			t.absent++ // What may not be read shows by this alone.
		case !answer.Absent(false):
			t.refused = true
			// An earlier DELETE of a network whose answer was lost was not carried out: NICs are looked at again.
			t.Deleting = t.Deleting && t.Kind != api.KindNetwork
			s.tellOnce("DELETE of %s answered %d %s", t, answer.Status, answer.Text())
		}
	}
}

// finish deletes what is left of the run. The last lines will name what could not be deleted.
func (s *sweep) finish(ctx context.Context) (found []api.Thing, err error) {
	found, err = s.delete(ctx)
	for _, t := range s.unreadable() {
		s.last = append(s.last, fmt.Sprintf("NOT ALLOWED: whether %s is left cannot be read", t))
	}
	if err != nil {
		left := s.left(api.Kinds...)
		for _, t := range left {
			s.last = append(s.last, fmt.Sprintf("LEFT: %s", t))
		}
		s.last = append(s.last, "Try again: "+again(s.name))
		err = fmt.Errorf("%w; left are %d things of run %s", err, len(left), s.name)
	}
	return found, err
}

// sweepAll deletes what is left of runs older than an hour, and of the run that the settings name.
func (o *options) sweepAll(ctx context.Context) error {
	client, err := api.New(o.settings.Account, o.settings.Endpoint)
	if err != nil {
		return err
	}
	ctx, cancel := withLimit(ctx, o.limit)
	defer cancel()
	o.say("Sweeps %s.", o.where())
	var problem error
	if run := o.settings.sweepRun; run != "" {
		_, problem = o.newSweep(client, run).finish(ctx)
	}
	old, err := o.oldRuns(ctx, client)
	return errors.Join(problem, err, o.sweepOld(ctx, client, old))
}

// sweepOld sweeps old runs. One that is stuck costs three minutes of thirty.
func (o *options) sweepOld(ctx context.Context, client *api.Client, old map[string][]api.Thing) (all error) {
	for run := range old {
		sweeping, stop := withLimit(ctx, o.limit/10)
		_, err := o.newSweep(client, run).finish(sweeping)
		stop()
		all = errors.Join(all, err)
	}
	return all
}

// oldRuns returns the networks and servers with the name of a run that is over, by run. It waits while the
// API is down for a minute.
func (o *options) oldRuns(ctx context.Context, client *api.Client) (map[string][]api.Thing, error) {
	runs, s := map[string][]api.Thing{}, o.newSweep(client, "")
	add := func(t api.Thing) {
		if run, ok := api.RunOf(t.Name); ok && api.IsOld(run, time.Now()) {
			runs[run] = append(runs[run], t)
		}
	}
	err := o.awaitFor(ctx, 2*o.settle, "all lists", func(ctx context.Context) (string, bool, error) {
		networks, problem := client.Networks(ctx)
		servers, err := client.Servers(ctx, "")
		if err = errors.Join(problem, err); err != nil {
			s.tellOnce("not all could be read: %v", err)
			return "", false, err
		}
		for _, network := range networks {
			add(api.Thing{Kind: api.KindNetwork, ID: network.ID, Name: network.Name})
		}
		for _, server := range servers {
			add(api.Thing{Kind: api.KindServer, ID: server.ID, Name: server.Name})
		}
		return "", true, nil
	})
	return runs, err
}
