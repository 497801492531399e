// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package sweep deletes what a run of the suite has created: its networks, the servers in them that have
// a name of the run, and what the run has noted by ID, whatever its name. It reports anything else in
// the networks, and then keeps them.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Options of a sweep.
type Options struct {
	API *api.Client
	// Out receives what was found before anything is deleted.
	Out io.Writer
	// Settle is how long lists may lag: a network is deleted once nothing has shown for so long.
	// Poll is the interval of the reads.
	Settle, Poll time.Duration
}

// Sweep is the sweep of one run.
type Sweep struct {
	Options

	run string
	// noted are the resources of the run, in the order they were found.
	noted []*thing
	// strangers are the IDs of resources in the run's networks that are not the run's to delete.
	strangers map[string]bool
	told      map[string]bool
	// listed says that the lists of the last look were answered.
	listed bool
}

// thing is a resource that the run has created.
type thing struct {
	api.Thing

	// shown says that an answer has shown the resource; hidden, that the account may not read it.
	shown, hidden bool
	// holder is the ID of the server that it is attached to: it is deleted with that.
	holder string
	// wait is the number of rounds until the next DELETE.
	wait int
	// absent is the number of answers in a row that did not show it.
	absent int
}

// gone reports whether two answers in a row did not show the resource: one proves nothing.
func (t *thing) gone() bool { return t.absent >= 2 }

func (t *thing) seen(status, holder string) {
	t.shown, t.hidden, t.absent, t.Status, t.holder = true, false, 0, status, holder
}

// New returns the sweep of a run. It finds resources by the run's name.
func New(o Options, run string) *Sweep {
	return &Sweep{Options: o, run: run, strangers: map[string]bool{}, told: map[string]bool{}}
}

// Note adds resources that are known by ID.
func (s *Sweep) Note(things ...api.Thing) {
	for _, t := range things {
		if known := s.known(t.ID); known != nil {
			known.Deleting = known.Deleting || t.Deleting
		} else {
			s.noted = append(s.noted, &thing{Thing: t})
		}
	}
}

// known returns the noted resource with this ID, nil if there is none.
func (s *Sweep) known(id string) *thing {
	for _, t := range s.noted {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// present returns the noted resources that are not known to be gone.
func (s *Sweep) present(kinds ...string) (present []*thing) {
	for _, t := range s.noted {
		if slices.Contains(kinds, t.Kind) && !t.gone() {
			present = append(present, t)
		}
	}
	return present
}

func (s *Sweep) say(format string, args ...any) {
	if text := fmt.Sprintf("sweep: "+format, args...); !s.told[text] {
		s.told[text] = true
		_, _ = fmt.Fprintln(s.Out, text)
	}
}

// Look reads what is left of the run. An error means that not all could be read.
func (s *Sweep) Look(ctx context.Context) error {
	clear(s.strangers)
	networks, err := s.API.Networks(ctx)
	s.listed = err == nil
	for _, network := range networks {
		if network.Name == api.NetworkName(s.run) {
			s.Note(api.Thing{Kind: api.KindNetwork, ID: network.ID, Name: network.Name})
			s.known(network.ID).absent = 0
		}
	}
	problems := []error{err, s.lookForServers(ctx)}
	for _, t := range s.present(api.KindNetwork) {
		problems = append(problems, s.lookForNICs(ctx, t.ID))
	}
	for _, t := range s.present(api.KindNetwork, api.KindVolume) {
		problems = append(problems, s.read(ctx, t))
	}
	for _, t := range s.present(api.KindNIC, api.KindVolume) {
		if t.holder != "" && s.known(t.holder) == nil {
			s.strangers[t.ID] = true
			s.say("leaves %s: it is attached to server %s, which is not the run's", t, t.holder)
		}
	}
	return errors.Join(problems...)
}

// lookForServers lists the servers with a name of the run, and reads noted ones that no list shows.
func (s *Sweep) lookForServers(ctx context.Context) error {
	servers, err := s.API.Servers(ctx, "")
	s.listed = s.listed && err == nil
	problems, listed := []error{err}, map[string]bool{}
	for _, server := range servers {
		if !strings.HasPrefix(server.Name, api.Name(s.run, "")) || server.Status == api.StatusDeleted {
			continue
		}
		if s.known(server.ID) == nil {
			problems = append(problems, s.claim(ctx, server.ID))
		}
		if t := s.known(server.ID); t != nil {
			listed[t.ID] = true
			t.seen(server.Status, "")
		}
	}
	for _, t := range s.present(api.KindServer) {
		if !listed[t.ID] {
			problems = append(problems, s.read(ctx, t))
		}
	}
	return errors.Join(problems...)
}

// claim notes a server with a name of the run, and its parts, if it is in a network of the run's. A
// server in CREATING or ERROR may have no NIC.
func (s *Sweep) claim(ctx context.Context, id string) error {
	server, err := s.API.Server(ctx, id)
	if err != nil || server == nil {
		return err
	}
	things := []api.Thing{{Kind: api.KindServer, ID: id, Name: server.Name}}
	for _, nic := range server.NICs {
		if network := s.known(nic.NetworkID); network != nil && network.Kind == api.KindNetwork {
			things = append(things, api.Thing{Kind: api.KindNIC, ID: nic.ID, Name: server.Name})
		}
	}
	if len(server.NICs) > 0 && len(things) == 1 {
		s.say("leaves server %s (%s): it is in another network than the run's", id, server.Name)
		return nil
	}
	if volume := server.BootVolume.ID; volume != "" {
		things = append(things, api.Thing{Kind: api.KindVolume, ID: volume, Name: server.Name})
	}
	s.Note(things...)
	return nil
}

// path is the path of a resource that can be read by its ID alone.
func path(t api.Thing) string {
	return map[string]string{
		api.KindServer: api.PathServers, api.KindVolume: api.PathVolumes, api.KindNetwork: api.PathNetworks,
	}[t.Kind] + "/" + t.ID
}

// read reads a resource by its ID: a boot volume, for one, may have any name. Where lists are refused, too,
// a 403 says nothing about the resource.
func (s *Sweep) read(ctx context.Context, t *thing) error {
	answer, err := s.API.Do(ctx, http.MethodGet, path(t.Thing), nil)
	found := api.Item[struct{ ID, Status, ServerID string }](answer)
	switch {
	case err != nil:
		return err
	case answer.Absent(t.Deleting && s.listed) || found.Status == api.StatusDeleted:
		t.absent++
	case answer.Status == http.StatusForbidden && t.Kind == api.KindVolume:
		t.hidden = true
	case found.ID == "":
		return &api.AnswerError{Answer: answer, Call: "GET " + path(t.Thing)}
	default:
		t.seen(found.Status, found.ServerID)
	}
	return nil
}

// lookForNICs lists the NICs of a network of the run.
func (s *Sweep) lookForNICs(ctx context.Context, network string) error {
	nics, err := s.API.NICs(ctx, network)
	if err != nil && !api.IsStatus(err, http.StatusNotFound) {
		return err
	}
	shown := map[string]bool{}
	for _, nic := range nics {
		t := api.Thing{Kind: api.KindNIC, ID: nic.ID, Name: nic.Name, Network: network}
		known, holder := s.known(nic.ID), s.known(nic.Device)
		switch {
		case nic.Type == "gateway" || nic.Type == "metadata":
			continue // The network's own.
		case known != nil:
			known.Network = network
			known.seen("", nic.Device)
		case holder != nil && !holder.gone():
			// It is deleted with the run's server, or reported once that is gone.
		case strings.HasPrefix(nic.Name, api.Name(s.run, "")) && nic.Device == "":
			s.Note(t)
			s.known(t.ID).seen("", "")
		default:
			s.strangers[t.ID] = true
			s.say("leaves %s: nobody knows whose it is", t)
		}
		shown[nic.ID] = true
	}
	for _, t := range s.present(api.KindNIC) {
		if !shown[t.ID] && (t.Network == network || t.Network == "") {
			t.absent++
		}
	}
	return nil
}

// Left returns the run's resources that are not known to be gone, except networks, what the account may
// not read, and what is attached to another's server.
func (s *Sweep) Left() (left []api.Thing) {
	for _, t := range s.present(api.KindServer, api.KindNIC, api.KindVolume) {
		if !t.hidden && !s.strangers[t.ID] {
			left = append(left, t.Thing)
		}
	}
	return left
}

// Hidden returns the volumes that the account may not read: nobody knows whether they are left.
func (s *Sweep) Hidden() (hidden []api.Thing) {
	for _, t := range s.present(api.KindVolume) {
		if t.hidden {
			hidden = append(hidden, t.Thing)
		}
	}
	return hidden
}

// Rest returns all that is left, the networks last.
func (s *Sweep) Rest() []api.Thing {
	rest := s.Left()
	for _, t := range s.present(api.KindNetwork) {
		rest = append(rest, t.Thing)
	}
	return rest
}

// Delete deletes what is left of the run, its networks last. It returns what it found, without the
// networks. Its error says why it could not delete the Rest.
func (s *Sweep) Delete(ctx context.Context) (found []api.Thing, err error) {
	var clean, told time.Time
	var problem error
	for {
		began := time.Now()
		err := s.Look(ctx)
		if ctx.Err() == nil {
			problem = err
		}
		if problem != nil && time.Since(told) > 15*time.Second {
			told = time.Now()
			s.say("%s: not all could be read: %s", told.Format(time.TimeOnly), oneLine(problem))
		}
		found = s.removeParts(ctx, found)
		if len(s.Left()) > 0 || err != nil {
			clean = time.Time{}
		} else if clean.IsZero() {
			clean = began
		}
		if !clean.IsZero() && began.Sub(clean) >= s.Settle {
			if gone, err := s.removeNetworks(ctx); gone || err != nil {
				return found, err
			}
		}
		if err := api.Pause(ctx, s.Poll); err != nil {
			if problem != nil {
				err = fmt.Errorf("%w; at last: %s", err, oneLine(problem))
			}
			return found, err
		}
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// askAgain is the number of rounds from one DELETE to the next.
const askAgain = 10

// removeParts deletes all but networks, and adds to found what there was to delete.
func (s *Sweep) removeParts(ctx context.Context, found []api.Thing) []api.Thing {
	for _, t := range s.present(api.KindServer, api.KindNIC, api.KindVolume) {
		if s.remove(ctx, t) && !slices.ContainsFunc(found, func(f api.Thing) bool { return f.ID == t.ID }) {
			found = append(found, t.Thing)
		}
	}
	return found
}

// removeNetworks deletes the networks if nothing else is in them, and reports whether they are gone.
func (s *Sweep) removeNetworks(ctx context.Context) (gone bool, err error) {
	if len(s.strangers) > 0 {
		return false, errors.New("sweep: the network stays, since not all in it is the run's: see above")
	}
	networks := s.present(api.KindNetwork)
	for _, t := range networks {
		s.remove(ctx, t)
	}
	return len(networks) == 0, nil
}

// remove sends a DELETE unless the last one was a moment ago, and reports whether there was something to
// delete: a list that lags shows what is gone. What is attached is deleted with its server.
func (s *Sweep) remove(ctx context.Context, t *thing) bool {
	if t.wait > 0 {
		t.wait--
		return false
	}
	if !t.shown && !t.hidden || s.isHeld(t) {
		return false
	}
	s.say("deletes %s", t)
	return s.delete(ctx, t)
}

// delete sends one DELETE, and reports whether it was accepted, or may have been. No other function of a sweep does.
func (s *Sweep) delete(ctx context.Context, t *thing) bool {
	target := path(t.Thing)
	if t.Kind == api.KindNIC {
		target = api.PathNICs(t.Network) + "/" + t.ID
	}
	answer, err := s.API.Do(ctx, http.MethodDelete, target, nil)
	switch {
	case answer.Succeeded():
		t.Deleting, t.wait = true, askAgain
	case t.hidden && answer.Absent(false):
		t.absent++ // What may not be read shows by this alone.
	case t.hidden && answer.Refused():
		t.wait = askAgain
	case answer.Unknown():
		t.Deleting = t.Deleting || !t.hidden
		s.say("DELETE of %s answered %d: %v", t, answer.Status, err)
	case !answer.Absent(false):
		s.say("DELETE of %s answered %d %s", t, answer.Status, answer.Text())
	}
	return answer.Succeeded() || answer.Unknown() && ctx.Err() == nil
}

// isHeld reports whether a resource is attached to a server that is not a gone one of the run's. Of what
// may not be read, the name tells the server.
func (s *Sweep) isHeld(t *thing) bool {
	if t.hidden {
		return slices.ContainsFunc(s.present(api.KindServer), func(server *thing) bool { return server.Name == t.Name })
	}
	holder := s.known(t.holder)
	return t.holder != "" && (holder == nil || !holder.gone())
}

// Runs returns the networks and servers with the name of a run, by run.
func Runs(ctx context.Context, client *api.Client) (map[string][]api.Thing, error) {
	networks, problem := client.Networks(ctx)
	servers, err := client.Servers(ctx, "")
	runs := map[string][]api.Thing{}
	add := func(t api.Thing) {
		if run, ok := api.RunOf(t.Name); ok {
			runs[run] = append(runs[run], t)
		}
	}
	for _, network := range networks {
		add(api.Thing{Kind: api.KindNetwork, ID: network.ID, Name: network.Name})
	}
	for _, server := range servers {
		add(api.Thing{Kind: api.KindServer, ID: server.ID, Name: server.Name})
	}
	return runs, errors.Join(problem, err)
}
