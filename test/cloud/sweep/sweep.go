// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package sweep deletes what a run of the suite has created: its network, the servers in it that have a
// name of the run, and what the run has noted by ID, whatever its name. It reports anything else in
// the network, and then keeps the network.
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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// Options of a sweep.
type Options struct {
	API *api.Client
	// Out receives what was found before anything is deleted.
	Out io.Writer
	// Settle is how long lists may lag: the network is deleted once nothing has shown for so long.
	// Poll is the interval of the reads.
	Settle, Poll time.Duration
}

// Sweep is the sweep of one run.
type Sweep struct {
	Options

	run string
	// network is the ID of the run's network; goes is the state of its deletion.
	network string
	goes    thing
	// noted are the resources known by ID, in the order they were noted.
	noted []*thing
	// strangers are the IDs of resources in the network that are not the run's to delete.
	strangers map[string]bool
	// refused are the kinds of resources that the account may not read.
	refused map[string]bool
	told    map[string]bool
}

// thing is a resource that the run has created.
type thing struct {
	mark.Thing

	// shown says that an answer has shown the resource.
	shown bool
	// held says that it is attached to a server and is deleted with it.
	held bool
	// wait is the number of rounds until the next DELETE.
	wait int
	// absent is the number of answers in a row that did not show it.
	absent int
}

// signs is how many answers in a row must not show a resource that counts as gone.
const signs = 2

func (t *thing) gone() bool { return t.absent >= signs }

// New returns the sweep of a run. It finds resources, the network among them, by the run's name.
func New(o Options, run string) *Sweep {
	return &Sweep{
		Options: o, run: run,
		strangers: map[string]bool{}, refused: map[string]bool{}, told: map[string]bool{},
	}
}

// SetNetwork sets the ID of the run's network.
func (s *Sweep) SetNetwork(id string) { s.network = id }

// Note adds resources that are known by ID.
func (s *Sweep) Note(things []mark.Thing) {
	for _, t := range things {
		s.note(t)
	}
}

func (s *Sweep) note(t mark.Thing) {
	if known := s.known(t.ID); known != nil {
		known.Deleting = known.Deleting || t.Deleting
		return
	}
	s.noted = append(s.noted, &thing{Thing: t})
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

func (s *Sweep) say(format string, args ...any) {
	if text := fmt.Sprintf("sweep: "+format, args...); !s.told[text] {
		s.told[text] = true
		_, _ = fmt.Fprintln(s.Out, text)
	}
}

// Look reads what is left of the run. An error means that not all could be read.
func (s *Sweep) Look(ctx context.Context) error {
	clear(s.strangers)
	problems := []error{s.lookForNetwork(ctx), s.lookForServers(ctx)}
	if s.network != "" {
		problems = append(problems, s.lookIntoNetwork(ctx))
	}
	for _, t := range s.noted {
		if t.Kind == mark.KindVolume && !t.gone() {
			problems = append(problems, s.lookAtVolume(ctx, t))
		}
	}
	return errors.Join(problems...)
}

func (s *Sweep) lookForNetwork(ctx context.Context) error {
	if s.network != "" {
		return nil
	}
	networks, err := s.API.Networks(ctx)
	for _, network := range networks {
		if network.Name == mark.Network(s.run) {
			s.network = network.ID
		}
	}
	return err
}

// lookForServers lists the servers with a name of the run, and reads noted ones that no list shows.
func (s *Sweep) lookForServers(ctx context.Context) error {
	servers, problem := s.API.Servers(ctx, "")
	problems := []error{problem}
	listed := map[string]bool{}
	for _, server := range servers {
		if !strings.HasPrefix(server.Name, mark.Name(s.run, "")) || server.Status == api.StatusDeleted {
			continue
		}
		problems = append(problems, s.claim(ctx, server))
		if t := s.known(server.ID); t != nil {
			listed[t.ID] = true
			t.shown, t.Status, t.absent = true, server.Status, 0
		}
	}
	for _, t := range s.noted {
		if t.Kind == mark.KindServer && !listed[t.ID] && !t.gone() {
			problems = append(problems, s.read(ctx, t, problem == nil))
		}
	}
	return errors.Join(problems...)
}

// read reads a server that no list has shown; listed says that the lists were answered.
func (s *Sweep) read(ctx context.Context, t *thing, listed bool) error {
	server, err := s.API.Server(ctx, t.ID)
	if t.Deleting && api.IsForbidden(err) && listed {
		server, err = nil, nil // Some APIs answer so for what is gone.
	}
	switch {
	case err != nil:
		return err
	case server == nil || server.Status == api.StatusDeleted:
		t.absent++
	default:
		t.shown, t.Status, t.absent = true, server.Status, 0
	}
	return nil
}

// claim notes a server in the run's network that has a name of the run, and its parts. A server in
// CREATING or ERROR may have no NIC.
func (s *Sweep) claim(ctx context.Context, listed api.Server) error {
	if s.known(listed.ID) != nil {
		return nil
	}
	server, err := s.API.Server(ctx, listed.ID)
	if err != nil || server == nil {
		return err
	}
	inIt := len(server.NICs) == 0
	for _, nic := range server.NICs {
		inIt = inIt || nic.NetworkID == s.network
	}
	if !inIt {
		s.say("leaves server %s (%s): it is in another network than the run's", server.ID, server.Name)
		return nil
	}
	s.note(mark.Thing{Kind: mark.KindServer, ID: server.ID, Name: server.Name})
	for _, nic := range server.NICs {
		if nic.NetworkID == s.network {
			s.note(mark.Thing{Kind: mark.KindNIC, ID: nic.ID, Name: server.Name})
		}
	}
	if volume := server.BootVolume.ID; volume != "" {
		s.note(mark.Thing{Kind: mark.KindVolume, ID: volume, Name: server.Name})
	}
	return nil
}

// lookIntoNetwork lists the NICs of the run's network.
func (s *Sweep) lookIntoNetwork(ctx context.Context) error {
	nics, err := s.API.NICs(ctx, s.network)
	var answered *api.AnswerError
	if errors.As(err, &answered) && answered.Status == http.StatusNotFound {
		nics, err = nil, nil
	}
	if err != nil {
		return err
	}
	shown := map[string]api.NIC{}
	for _, nic := range nics {
		if nic.Type == "gateway" || nic.Type == "metadata" {
			continue // The network's own.
		}
		shown[nic.ID] = nic
		switch {
		case s.known(nic.ID) != nil:
		case s.holds(nic.Device):
			// It is deleted with the run's server, or reported once that is gone.
		case strings.HasPrefix(nic.Name, mark.Name(s.run, "")) && nic.Device == "":
			s.note(mark.Thing{Kind: mark.KindNIC, ID: nic.ID, Name: nic.Name})
		default:
			s.strange(mark.Thing{Kind: mark.KindNIC, ID: nic.ID, Name: nic.Name}, "nobody knows whose it is")
		}
	}
	for _, t := range s.noted {
		if t.Kind != mark.KindNIC || t.gone() {
			continue
		}
		nic, is := shown[t.ID]
		if !is {
			t.absent++
			continue
		}
		t.shown, t.held, t.absent = true, s.holds(nic.Device), 0
		s.checkHolder(t, nic.Device)
	}
	return nil
}

// holds reports whether the ID is a server of the run that is not gone.
func (s *Sweep) holds(server string) bool {
	t := s.known(server)
	return t != nil && !t.gone()
}

// lookAtVolume reads a boot volume by ID, since it may have any name.
func (s *Sweep) lookAtVolume(ctx context.Context, t *thing) error {
	volume, err := s.API.Volume(ctx, t.ID)
	switch {
	case api.IsForbidden(err):
		if !t.shown {
			s.refused[mark.KindVolume] = true
		}
		t.absent++ // nobody can do more about it
		return nil
	case err != nil:
		return err
	case volume == nil || volume.Status == "DELETED":
		t.absent++
	default:
		t.shown, t.Status, t.held, t.absent = true, volume.Status, s.holds(volume.ServerID), 0
		s.checkHolder(t, volume.ServerID)
	}
	return nil
}

// checkHolder excludes what somebody has attached to another server.
func (s *Sweep) checkHolder(t *thing, server string) {
	if server != "" && s.known(server) == nil {
		s.strange(t.Thing, "it is attached to server "+server+", which is not the run's")
	}
}

func (s *Sweep) strange(t mark.Thing, why string) {
	s.strangers[t.ID] = true
	s.say("leaves %s: %s", t, why)
}

// NotAllowed reports whether the account may not read this kind of resource.
func (s *Sweep) NotAllowed(kind string) bool { return s.refused[kind] }

// Left returns the run's resources that are not known to be gone, except the network.
func (s *Sweep) Left() []mark.Thing {
	var left []mark.Thing
	for _, t := range s.noted {
		if !t.gone() && !s.strangers[t.ID] {
			left = append(left, t.Thing)
		}
	}
	return left
}

// Kept returns the NICs and volumes whose server is gone.
func (s *Sweep) Kept() []mark.Thing {
	var kept []mark.Thing
	for _, t := range s.noted {
		if t.Kind != mark.KindServer && t.shown && !t.gone() && !t.held {
			kept = append(kept, t.Thing)
		}
	}
	return kept
}

// LeftError lists what a sweep could not delete.
type LeftError struct {
	Run   string
	Left  []string
	Cause error
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("%v; left are %d things", e.Cause, len(e.Left))
}

func (e *LeftError) Unwrap() error { return e.Cause }

// Left returns all LeftErrors in an error.
func Left(err error) (all []*LeftError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			all = append(all, Left(part)...)
		}
	} else if left := (*LeftError)(nil); errors.As(err, &left) {
		all = append(all, left)
	}
	return all
}

// Delete deletes what is left of the run, its network last. It returns what it found; its error is a
// *LeftError.
func (s *Sweep) Delete(ctx context.Context) (found []mark.Thing, err error) {
	clean := time.Time{}
	var problem error
	for last := (time.Time{}); ; {
		began := time.Now()
		err := s.Look(ctx)
		if ctx.Err() == nil {
			problem = err
		}
		if problem != nil && time.Since(last) > 15*time.Second {
			last = time.Now()
			s.say("%s: not all could be read: %s", last.Format(time.TimeOnly), oneLine(problem))
		}
		switch {
		case len(s.Left()) > 0 || err != nil:
			clean = time.Time{}
			found = s.remove(ctx, found)
		case clean.IsZero():
			clean = began
		}
		if !clean.IsZero() && began.Sub(clean) >= s.Settle {
			gone, err := s.removeNetwork(ctx)
			if gone || err != nil {
				return found, err
			}
		}
		if err := api.Pause(ctx, s.Poll); err != nil {
			if problem != nil {
				err = fmt.Errorf("%w; at last: %s", err, oneLine(problem))
			}
			return found, s.leftError(err)
		}
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (s *Sweep) leftError(cause error) error {
	var left []string
	for _, t := range s.Left() {
		left = append(left, t.String())
	}
	if s.network != "" {
		left = append(left, mark.Thing{Kind: mark.KindNetwork, ID: s.network, Name: mark.Network(s.run)}.String())
	}
	return &LeftError{Run: s.run, Left: left, Cause: cause}
}

// askAgain is the number of rounds from one DELETE to the next.
const askAgain = 10

// remove sends DELETEs. What is attached is deleted with its server.
func (s *Sweep) remove(ctx context.Context, found []mark.Thing) []mark.Thing {
	for _, t := range s.noted {
		if t.gone() || !t.shown || s.strangers[t.ID] {
			continue
		}
		if t.wait > 0 {
			t.wait--
			continue
		}
		if t.held {
			continue
		}
		if !slices.ContainsFunc(found, func(f mark.Thing) bool { return f.ID == t.ID }) {
			found = append(found, t.Thing)
		}
		s.say("deletes %s", t)
		s.delete(ctx, t, map[string]string{
			mark.KindServer: api.PathServers, mark.KindNIC: api.PathNICs(s.network), mark.KindVolume: api.PathVolumes,
		}[t.Kind])
	}
	return found
}

// delete sends one DELETE. No other function does.
func (s *Sweep) delete(ctx context.Context, t *thing, path string) {
	answer, err := s.API.Do(ctx, http.MethodDelete, path+"/"+t.ID, nil)
	switch {
	case err != nil:
		s.say("DELETE of %s: %v", t, err)
	case answer.Status < http.StatusBadRequest:
		t.Deleting, t.wait = true, askAgain
	case answer.Status != http.StatusNotFound:
		s.say("DELETE of %s answered %d", t, answer.Status)
	}
}

// removeNetwork deletes the network if nothing else is in it, and reports whether it is gone.
func (s *Sweep) removeNetwork(ctx context.Context) (gone bool, err error) {
	if len(s.strangers) > 0 {
		return false, s.leftError(errors.New("sweep: the network stays, since not all in it is the run's: see above"))
	}
	if s.network == "" {
		return true, nil
	}
	t := &s.goes
	if t.ID != s.network {
		t.Thing = mark.Thing{Kind: mark.KindNetwork, ID: s.network, Name: mark.Network(s.run)}
	}
	network, err := s.API.Network(ctx, s.network)
	switch {
	case err == nil && network == nil, err == nil && network.Status == "DELETED", t.Deleting && api.IsForbidden(err):
		t.absent++
	case err != nil && !api.IsForbidden(err):
		s.say("%s: %v", t, err)
	case t.wait > 0:
		t.wait, t.absent = t.wait-1, 0
	default:
		s.say("deletes %s", t)
		s.delete(ctx, t, api.PathNetworks)
	}
	if t.gone() {
		s.say("%s is gone", t)
	}
	return t.gone(), nil
}

// Runs returns the networks and servers with the name of a run, by run.
func Runs(ctx context.Context, client *api.Client) (map[string][]mark.Thing, error) {
	networks, problem := client.Networks(ctx)
	servers, err := client.Servers(ctx, "")
	runs := map[string][]mark.Thing{}
	add := func(t mark.Thing) {
		if run, ok := mark.RunOf(t.Name); ok {
			runs[run] = append(runs[run], t)
		}
	}
	for _, network := range networks {
		add(mark.Thing{Kind: mark.KindNetwork, ID: network.ID, Name: network.Name})
	}
	for _, server := range servers {
		add(mark.Thing{Kind: mark.KindServer, ID: server.ID, Name: server.Name})
	}
	return runs, errors.Join(problem, err)
}
